//! The code that a mapping becomes.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{DeriveInput, Generics, Member, Result, parse_quote};

use crate::attributes::{Attributes, Field};

/// The implementation of the trait `Event` for a struct.
pub(crate) fn event(input: &DeriveInput) -> Result<TokenStream> {
    let Attributes { path, name, version, stream, aggregate, id, key, sequenced, max_attempts, summary } =
        Attributes::of(input)?;
    let generics = bounded(&input.generics, [Some(&id), key.as_ref()].into_iter().flatten());
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let ident = &input.ident;

    let version = version.map(|version| quote!(const VERSION: u32 = #version;));
    let stream = stream.map(|stream| quote!(const STREAM: &'static str = #stream;));
    let sequenced = sequenced.then(|| {
        quote!(
            const SEQUENCED: bool = true;
        )
    });
    let max_attempts = max_attempts.map(|attempts| {
        quote!(const MAX_ATTEMPTS: ::core::option::Option<u32> = ::core::option::Option::Some(#attempts);)
    });
    let key_field = key.as_ref().map(|key| {
        let field = match &key.member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        quote!(const KEY_FIELD: ::core::option::Option<&'static str> = ::core::option::Option::Some(#field);)
    });
    let summary = summary.map(|summary| {
        quote!(const SUMMARY: ::core::option::Option<&'static str> = ::core::option::Option::Some(#summary);)
    });
    let id = text(&id);
    let key = key.as_ref().map(text).map(|key| {
        quote! {
            fn ordering_key(&self) -> ::core::option::Option<::std::string::String> {
                ::core::option::Option::Some(#key)
            }
        }
    });

    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #path::Event for #ident #type_generics #where_clause {
            const NAME: &'static str = #name;
            #version
            #stream
            const AGGREGATE: &'static str = #aggregate;
            #sequenced
            #max_attempts
            #key_field
            #summary

            fn aggregate_id(&self) -> ::std::string::String {
                #id
            }

            #key
        }
    })
}

/// The value of a field as text. That its type is no `ToString` is reported at the field.
fn text(field: &Field) -> TokenStream {
    let member = &field.member;
    // Only the place is the field's: names are looked up where the derive stands, whatever macro wrote the field.
    let span = Span::call_site().located_at(field.span);
    quote_spanned!(span=> ::std::string::ToString::to_string(&self.#member))
}

/// The generics of a struct, with what the implementation asks of its type parameters.
fn bounded<'f>(generics: &Generics, texts: impl Iterator<Item = &'f Field>) -> Generics {
    let parameters: Vec<String> =
        generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
    let mut generics = generics.clone();
    if parameters.is_empty() {
        return generics;
    }
    let clause = generics.make_where_clause();
    clause.predicates.push(parse_quote!(Self: ::serde::Serialize));
    for kind in texts.map(|field| &field.kind).filter(|kind| mentions(kind.to_token_stream(), &parameters)) {
        clause.predicates.push(parse_quote!(#kind: ::std::string::ToString));
    }
    generics
}

fn mentions(tokens: TokenStream, parameters: &[String]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => parameters.contains(&ident.to_string()),
        TokenTree::Group(group) => mentions(group.stream(), parameters),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(input: &str) -> String {
        event(&syn::parse_str(input).expect("Rust")).expect("valid").to_string()
    }

    #[test]
    fn the_least_mapping_leaves_every_default_to_the_trait() {
        let expected = quote! {
            #[automatically_derived]
            impl ::postrider::Event for OrderPaid {
                const NAME: &'static str = "OrderPaid";
                const AGGREGATE: &'static str = "Order";

                fn aggregate_id(&self) -> ::std::string::String {
                    ::std::string::ToString::to_string(&self.order)
                }
            }
        };
        let input = r#"#[event(aggregate = "Order", id = order)] struct OrderPaid { order: i64 }"#;
        assert_eq!(expanded(input), expected.to_string());
    }

    #[test]
    fn only_a_type_parameter_asks_for_bounds() {
        let header = |input: &str| expanded(input).split_once('{').expect("a body").0.trim().to_owned();
        let plain = |header: TokenStream| quote!(#[automatically_derived] #header).to_string();
        assert_eq!(
            header(
                r#"#[event(aggregate = "Order", id = 0)] struct Paid<'a, const N: usize>(&'a str, [u8; N]);"#
            ),
            plain(quote!(impl<'a, const N: usize> ::postrider::Event for Paid<'a, N>))
        );
        assert_eq!(
            header(
                r#"#[event(aggregate = "Order", id = 0, key = 1)] struct Paid<I = u8>(Option<I>, u8) where I: Copy;"#
            ),
            plain(quote! {
                impl<I> ::postrider::Event for Paid<I>
                where I: Copy, Self: ::serde::Serialize, Option<I>: ::std::string::ToString
            })
        );
    }
}
