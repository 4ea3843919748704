//! What the doc comment of a struct says first.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The first sentence of a doc comment: the text up to the first full stop that ends a line or a word, or to the first empty line.
pub(super) fn of(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(line);
    let paragraph: Vec<String> =
        lines.skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let sentence = text.find(". ").map_or(text.as_str(), |end| &text[..=end]);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else { return None };
    meta.path.is_ident("doc").then(|| text.value().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(source: &str) -> Option<String> {
        of(&syn::parse_str::<syn::DeriveInput>(source).expect("Rust").attrs)
    }

    #[test]
    fn the_summary_is_the_first_sentence_of_the_doc_comment() {
        assert_eq!(summary("struct A;"), None);
        assert_eq!(
            summary("/// An order was paid\n/// in full. By anyone.\nstruct A;").as_deref(),
            Some("An order was paid in full.")
        );
        assert_eq!(summary("///\n/// Paid\n///\n/// More.\nstruct A;").as_deref(), Some("Paid"));
    }
}
