//! What `#[event(…)]` says, read and checked. It does not know what code comes of it.

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
        let mut said = Said::default();
        let fields = fields(input)?;
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| said.on_struct(&meta, input, fields))?;
        }
        for (field, member) in fields.iter().zip(fields.members()) {
            for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
                attribute.parse_nested_meta(|meta| said.on_field(&meta, field, &member))?;
            }
        }
        said.complete(input)
    }
}

fn fields(input: &DeriveInput) -> Result<&Fields> {
    let (token, what) = match &input.data {
        Data::Struct(data) => return Ok(&data.fields),
        Data::Enum(data) => (data.enum_token.span, "an enum"),
        Data::Union(data) => (data.union_token.span, "a union"),
    };
    let message = format!("derive it on a struct; for {what} use NewEvent or a EventMappings entry");
    Err(Error::new(token, message))
}

/// What has been read so far.
#[derive(Default)]
struct Said {
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

impl Said {
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
                    "`{other}` is unknown here; a struct takes `name`, `version`, `stream`, `aggregate`, `id`, `key`, \
                     `sequenced`, `max_attempts` and `crate`"
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
            other => Err(at(&meta.path, format!("`{other}` is unknown here; a field takes `id` and `key`"))),
        }
    }

    fn complete(self, input: &DeriveInput) -> Result<Attributes> {
        let missing = |what: &str| Error::new(input.ident.span(), what);
        let aggregate = self.aggregate.ok_or_else(|| {
            missing(
                "the aggregate is missing: say what the event happens to, `#[event(aggregate = \"Order\")]`",
            )
        });
        let id = self.id.ok_or_else(|| {
            missing(
                "the id is missing: name the field that identifies the aggregate, `#[event(id = order)]`, or mark it \
                 with `#[event(id)]`",
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
        Some(_) => Err(at(&meta.path, format!("`{}` is given twice", word(meta)))),
        None => Ok(()),
    }
}

/// Whether the next entry follows, or nothing.
fn ends(meta: &ParseNestedMeta<'_>) -> bool {
    meta.input.is_empty() || meta.input.peek(Token![,])
}

fn alone(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if ends(meta) {
        Ok(())
    } else {
        Err(meta.input.error(format!("`{}` stands alone, without a value", word(meta))))
    }
}

/// The value after the `=`; `wanted` is an example of it.
fn value<T: Parse>(meta: &ParseNestedMeta<'_>, what: &str, wanted: &str) -> Result<T> {
    let key = word(meta);
    let message = format!("`{key}` takes {what}, as in `{key} = {wanted}`");
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
        format!("`{key}` is empty")
    } else if name.len() > LONGEST_NAME {
        format!("`{key}` has {} bytes, more than the {LONGEST_NAME} allowed", name.len())
    } else if name.contains('\0') {
        format!("`{key}` has a NUL character in it, which databases can't keep as text")
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
    text.parse_with(Path::parse_mod_style)
        .map_err(|_| Error::new(text.span(), format!("`{}` is not the path of a crate", text.value())))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Result<Attributes> {
        Attributes::of(&syn::parse_str(input).expect("Rust"))
    }

    /// All the errors of an input, as the compiler would show them.
    fn refusals(input: &str) -> Vec<String> {
        let error = read(input).err().expect("must be refused");
        error.into_iter().map(|error| error.to_string()).collect()
    }

    /// The only error of a struct with these attributes and two fields.
    fn refusal(attributes: &str) -> String {
        let input = format!("#[event({attributes})] struct OrderPaid {{ order: i64, account: String }}");
        let mut errors = refusals(&input);
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors.remove(0)
    }

    #[test]
    fn what_is_said_is_read() {
        let read = read(
            r#"#[event(name = "Paid", version = 2, stream = "orders")]
               #[event(aggregate = "Order", id = order, key = account, sequenced, max_attempts = 5, crate = "a::b",)]
               struct OrderPaid { order: i64, account: String }"#,
        )
        .expect("valid");
        assert_eq!((read.name.as_str(), read.aggregate.as_str()), ("Paid", "Order"));
        assert_eq!((read.version, read.stream.as_deref()), (Some(2), Some("orders")));
        assert_eq!((read.sequenced, read.max_attempts), (true, Some(5)));
        assert_eq!(spelled(&read.id.member), "order");
        assert_eq!(read.key.map(|key| spelled(&key.member)).as_deref(), Some("account"));
        assert_eq!(written(&read.path), "a::b");
    }

    #[test]
    fn what_is_not_said_is_left_to_the_trait() {
        let read = read(r#"#[event(aggregate = "Order", id = 0)] struct r#Paid(i64);"#).expect("valid");
        assert_eq!((read.name.as_str(), read.version, read.stream), ("Paid", None, None));
        assert!(read.key.is_none() && !read.sequenced && read.max_attempts.is_none());
        assert_eq!(written(&read.path), "::postrider");
    }

    #[test]
    fn one_field_may_be_both_id_and_key() {
        let read =
            read(r#"#[event(aggregate = "Order")] struct Paid(u8, #[event(id, key)] u8);"#).expect("valid");
        assert_eq!(spelled(&read.id.member), "1");
        assert_eq!(read.key.map(|key| spelled(&key.member)).as_deref(), Some("1"));
    }

    #[test]
    fn an_enum_and_a_union_are_sent_elsewhere() {
        let message = "derive it on a struct; for an enum use NewEvent or a EventMappings entry";
        assert_eq!(refusals("enum Paid { Card, Cash }"), [message]);
        assert_eq!(refusals("union Paid { card: u8 }"), [message.replace("an enum", "a union")]);
    }

    #[test]
    fn all_that_is_missing_is_said_at_once() {
        assert!(refusal("id = order").starts_with("the aggregate is missing: say what the event happens to"));
        assert!(
            refusal("aggregate = \"Order\"").starts_with("the id is missing: name the field that identifies")
        );
        assert_eq!(refusals("struct OrderPaid { order: i64 }").len(), 2);
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        assert_eq!(
            refusal("nmae = \"Paid\""),
            "`nmae` is unknown here; a struct takes `name`, `version`, `stream`, `aggregate`, `id`, `key`, \
             `sequenced`, `max_attempts` and `crate`"
        );
        assert!(refusal("a::b").starts_with("`a::b` is unknown here; a struct takes"));
        assert_eq!(
            refusals("struct Paid { #[event(name)] order: i64 }"),
            ["`name` is unknown here; a field takes `id` and `key`"]
        );
    }

    #[test]
    fn every_known_word_is_in_the_answer_and_given_only_once() {
        for (word, value) in [
            ("name", "= \"a\""),
            ("version", "= 1"),
            ("stream", "= \"a\""),
            ("aggregate", "= \"a\""),
            ("id", "= order"),
            ("key", "= order"),
            ("sequenced", ""),
            ("max_attempts", "= 1"),
            ("crate", "= \"a\""),
        ] {
            assert!(refusal("other").contains(&format!("`{word}`")), "{word}");
            assert_eq!(
                refusal(&format!("{word} {value}, {word} {value}")),
                format!("`{word}` is given twice")
            );
        }
    }

    #[test]
    fn a_field_is_not_marked_beside_another() {
        for twice in [
            "#[event(aggregate = \"Order\", id = a)] struct Paid { a: u8, #[event(id)] b: u8 }",
            "#[event(aggregate = \"Order\")] struct Paid { #[event(id)] a: u8, #[event(id)] b: u8 }",
        ] {
            assert_eq!(refusals(twice), ["`id` is given twice"]);
        }
    }

    #[test]
    fn a_field_that_does_not_exist_is_answered_with_those_that_do() {
        assert_eq!(refusal("id = ordr"), "there is no field `ordr`; OrderPaid has `order`, `account`");
        assert_eq!(refusal("key = 0"), "there is no field `0`; OrderPaid has `order`, `account`");
        assert_eq!(refusals("#[event(id = 1)] struct Paid(u8);"), ["there is no field `1`; Paid has `0`"]);
        assert_eq!(refusals("#[event(id = a)] struct Paid;"), ["there is no field `a`; Paid has no fields"]);
    }

    #[test]
    fn a_number_out_of_range_is_refused() {
        assert_eq!(refusal("version = 0"), "`version` must be from 1 to 4294967295");
        assert_eq!(refusal("version = 4294967296"), "`version` must be from 1 to 4294967295");
        assert_eq!(refusal("max_attempts = 0"), "`max_attempts` must be from 1 to 2147483647");
        assert_eq!(refusal("max_attempts = 2147483648"), "`max_attempts` must be from 1 to 2147483647");
        assert_eq!(refusal("max_attempts = -1"), "`max_attempts` must be from 1 to 2147483647");
    }

    #[test]
    fn a_name_that_no_table_could_keep_is_refused() {
        let (longest, longer) = ("x".repeat(LONGEST_NAME), "x".repeat(LONGEST_NAME + 1));
        for key in ["name", "stream", "aggregate"] {
            assert_eq!(refusal(&format!("{key} = \"\"")), format!("`{key}` is empty"));
            assert_eq!(
                refusal(&format!("{key} = \"{longer}\"")),
                format!("`{key}` has 201 bytes, more than the 200 allowed")
            );
            assert!(refusal(&format!("{key} = \"a\\0\"")).contains("NUL"));
        }
        let named = |name: &str| format!("#[event(aggregate = \"Order\", id = 0)] struct {name}(u8);");
        read(&named(&longest)).expect("long enough");
        assert_eq!(refusals(&named(&longer)), ["`name` has 201 bytes, more than the 200 allowed"]);
    }

    #[test]
    fn the_longest_name_is_the_one_that_record_allows() {
        assert_eq!(LONGEST_NAME, postrider_core::Limits::NAME);
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_answered_with_an_example() {
        let text = "`name` takes text in quotes, as in `name = \"…\"`";
        assert_eq!(refusal("name = Paid"), text);
        assert_eq!(refusal("name"), text);
        assert_eq!(refusal("name(\"Paid\")"), text);
        assert_eq!(refusal("version = \"2\""), "`version` takes a whole number, as in `version = 2`");
        let field = "`id` takes the name of a field or its index, as in `id = order`";
        assert_eq!(refusal("id = \"order\""), field);
        assert_eq!(refusal("id = self.order"), field);
        assert_eq!(refusal("id = order.number"), field);
        assert_eq!(refusal("sequenced = true"), "`sequenced` stands alone, without a value");
        assert_eq!(refusal("crate = \"a b\""), "`a b` is not the path of a crate");
        assert_eq!(
            refusals("struct Paid { #[event(id = order)] order: u8 }"),
            ["`id` stands alone, without a value"]
        );
    }
}
