//! The attributes `#[event(…)]`, parsed and checked. Nothing here knows the code that they become.

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, LitInt, LitStr, Member, Path, Result, Token, Type};

/// The longest name, in bytes: the limit that `record` and the tables have.
const LONGEST_NAME: usize = 200;
/// The largest number of attempts: what the tables keep as an `integer`.
const MOST_ATTEMPTS: u32 = i32::MAX.unsigned_abs();

/// The mapping of one struct, complete.
pub(crate) struct Attributes {
    /// The crate that has the trait.
    pub(crate) path: Path,
    pub(crate) name: String,
    pub(crate) version: Option<u32>,
    pub(crate) stream: Option<String>,
    pub(crate) aggregate: String,
    pub(crate) id: Field,
    pub(crate) key: Option<Field>,
    pub(crate) sequenced: bool,
    pub(crate) max_attempts: Option<u32>,
    /// The first sentence of the doc comment.
    pub(crate) summary: Option<String>,
}

/// The field that an id or a key comes from.
pub(crate) struct Field {
    pub(crate) member: Member,
    pub(crate) kind: Type,
    /// Where an error about its value belongs.
    pub(crate) span: Span,
}

impl Attributes {
    /// Reads the attributes of a struct and of its fields.
    pub(crate) fn of(input: &DeriveInput) -> Result<Self> {
        let mut parsed = Parsed::default();
        let fields = fields(input)?;
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| parsed.on_struct(&meta, input, fields))?;
        }
        for (field, member) in fields.iter().zip(fields.members()) {
            for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
                attribute.parse_nested_meta(|meta| parsed.on_field(&meta, field, &member))?;
            }
        }
        parsed.complete(input)
    }
}

fn fields(input: &DeriveInput) -> Result<&Fields> {
    let (token, what) = match &input.data {
        Data::Struct(data) => return Ok(&data.fields),
        Data::Enum(data) => (data.enum_token.span, "an enum"),
        Data::Union(data) => (data.union_token.span, "a union"),
    };
    let message =
        format!("`Event` must be derived on a struct; for {what}, use `NewEvent` or an `EventMapping`");
    Err(Error::new(token, message))
}

/// What has been parsed so far.
#[derive(Default)]
struct Parsed {
    path: Option<Path>,
    name: Option<LitStr>,
    version: Option<u32>,
    stream: Option<LitStr>,
    aggregate: Option<LitStr>,
    id: Option<Field>,
    key: Option<Field>,
    sequenced: Option<()>,
    max_attempts: Option<u32>,
}

impl Parsed {
    fn on_struct(&mut self, meta: &ParseNestedMeta<'_>, input: &DeriveInput, fields: &Fields) -> Result<()> {
        match word(meta).as_str() {
            "name" => once(&mut self.name, meta, name(meta)?),
            "version" => once(&mut self.version, meta, number(meta, u32::MAX)?),
            "stream" => once(&mut self.stream, meta, name(meta)?),
            "aggregate" => once(&mut self.aggregate, meta, name(meta)?),
            "id" => once(&mut self.id, meta, named_field(meta, input, fields)?),
            "key" => once(&mut self.key, meta, named_field(meta, input, fields)?),
            "sequenced" => once(&mut self.sequenced, meta, alone(meta)?),
            "max_attempts" => once(&mut self.max_attempts, meta, number(meta, MOST_ATTEMPTS)?),
            "crate" => once(&mut self.path, meta, path(meta)?),
            other => Err(at(
                &meta.path,
                format!(
                    "`{other}` is not known; on a struct it must be `name`, `version`, `stream`, `aggregate`, `id`, `key`, \
                     `sequenced`, `max_attempts` or `crate`"
                ),
            )),
        }
    }

    fn on_field(&mut self, meta: &ParseNestedMeta<'_>, field: &syn::Field, member: &Member) -> Result<()> {
        let marked = || {
            let span = field.ident.as_ref().map_or_else(|| field.ty.span(), syn::Ident::span);
            Field { member: member.clone(), kind: field.ty.clone(), span }
        };
        match word(meta).as_str() {
            "id" => alone(meta).and_then(|()| once(&mut self.id, meta, marked())),
            "key" => alone(meta).and_then(|()| once(&mut self.key, meta, marked())),
            other => {
                Err(at(&meta.path, format!("`{other}` is not known; on a field it must be `id` or `key`")))
            }
        }
    }

    fn complete(self, input: &DeriveInput) -> Result<Attributes> {
        let missing = |what: &str| Error::new(input.ident.span(), what);
        let aggregate = self.aggregate.ok_or_else(|| {
            missing(
                "`aggregate` is required: the type of the aggregate, as in `#[event(aggregate = \"Order\")]`",
            )
        });
        let id = self.id.ok_or_else(|| {
            missing(
                "`id` is required: the field with the aggregate's id, as in `#[event(id = order)]`, or `#[event(id)]` on \
                 the field",
            )
        });
        let (aggregate, id) = match (aggregate, id) {
            (Ok(aggregate), Ok(id)) => (aggregate, id),
            (Err(mut error), Err(other)) => {
                error.combine(other);
                return Err(error);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let name = match self.name {
            Some(name) => name.value(),
            None => {
                let name = input.ident.unraw().to_string();
                check_name("name", &name, input.ident.span())?;
                name
            }
        };
        Ok(Attributes {
            path: self.path.unwrap_or_else(|| syn::parse_quote!(::postrider)),
            name,
            version: self.version,
            stream: self.stream.map(|stream| stream.value()),
            aggregate: aggregate.value(),
            id,
            key: self.key,
            sequenced: self.sequenced.is_some(),
            max_attempts: self.max_attempts,
            summary: summary::of(&input.attrs),
        })
    }
}

/// The word before the `=`.
fn word(meta: &ParseNestedMeta<'_>) -> String {
    written(&meta.path)
}

fn written(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}

fn at(path: &Path, message: String) -> Error {
    Error::new_spanned(path, message)
}

fn once<T>(slot: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(at(&meta.path, format!("`{}` must be given only once", word(meta)))),
        None => Ok(()),
    }
}

/// Whether the next entry follows, or nothing.
fn ends(meta: &ParseNestedMeta<'_>) -> bool {
    meta.input.is_empty() || meta.input.peek(Token![,])
}

fn alone(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if ends(meta) { Ok(()) } else { Err(meta.input.error(format!("`{}` must not have a value", word(meta)))) }
}

/// The value after the `=`; `wanted` is an example of it.
fn value<T: Parse>(meta: &ParseNestedMeta<'_>, what: &str, wanted: &str) -> Result<T> {
    let key = word(meta);
    let message = format!("`{key}` must be {what}, as in `{key} = {wanted}`");
    if !meta.input.peek(Token![=]) {
        return Err(at(&meta.path, message));
    }
    let value = meta.value()?;
    let parsed = value.parse().map_err(|error| Error::new(error.span(), &message))?;
    if ends(meta) { Ok(parsed) } else { Err(value.error(message)) }
}

fn name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let text: LitStr = value(meta, "text in quotes", "\"…\"")?;
    check_name(&word(meta), &text.value(), text.span())?;
    Ok(text)
}

fn check_name(key: &str, name: &str, span: Span) -> Result<()> {
    let problem = if name.is_empty() {
        format!("`{key}` must not be empty")
    } else if name.len() > LONGEST_NAME {
        format!("`{key}` must have at most {LONGEST_NAME} bytes, not {}", name.len())
    } else if name.contains('\0') {
        format!("`{key}` must not contain a NUL character")
    } else {
        return Ok(());
    };
    Err(Error::new(span, problem))
}

fn number(meta: &ParseNestedMeta<'_>, most: u32) -> Result<u32> {
    let literal: LitInt = value(meta, "a whole number", "2")?;
    let number = literal.base10_parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| Error::new(literal.span(), format!("`{}` must be from 1 to {most}", word(meta))))
}

fn path(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    let text: LitStr = value(meta, "a path in quotes", "\"postrider_core\"")?;
    text.parse_with(Path::parse_mod_style).map_err(|_| {
        Error::new(
            text.span(),
            format!("`{}` must be the path of a crate, as in `postrider_core`", word(meta)),
        )
    })
}

fn named_field(meta: &ParseNestedMeta<'_>, input: &DeriveInput, fields: &Fields) -> Result<Field> {
    let wanted = if matches!(fields, Fields::Unnamed(_)) { "0" } else { "order" };
    let member: Member = value(meta, "the name of a field or its index", wanted)?;
    match fields.iter().zip(fields.members()).find(|(_, candidate)| *candidate == member) {
        Some((field, found)) => Ok(Field { member: found, kind: field.ty.clone(), span: member.span() }),
        None => {
            let known: Vec<String> =
                fields.members().map(|member| format!("`{}`", spelled(&member))).collect();
            let known = if known.is_empty() { "no fields".to_owned() } else { known.join(", ") };
            let message = format!("there is no field `{}`; {} has {known}", spelled(&member), input.ident);
            Err(Error::new(member.span(), message))
        }
    }
}

fn spelled(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

mod summary;
#[cfg(test)]
mod tests;
