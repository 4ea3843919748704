//! Names like `loopers.order.paid.v1`: company, domain, action, version.

use super::{NameRefusal, past_tense, words};

/// What follows the company in the name of the convention.
pub(super) const FORM: &str = "domain.action.vN";

/// Refuses what does not have the parts, or writes them otherwise.
pub(super) fn check(company: Option<&str>, name: &str) -> Result<(), NameRefusal> {
    if parts(company, name).is_some() {
        return Ok(());
    }
    let form = prefixed(company, FORM);
    let message = format!("`{name}` must have the form `{form}`, in lower case");
    Err(NameRefusal::new(message, suggestion(company, name)))
}

/// Whether it can be the company of a convention: words in lower case, separated by dots.
pub(super) fn is_company(text: &str) -> bool {
    text.split('.').all(is_part)
}

fn prefixed(company: Option<&str>, rest: &str) -> String {
    company.map_or_else(|| rest.to_owned(), |company| format!("{company}.{rest}"))
}

fn parts<'n>(company: Option<&str>, name: &'n str) -> Option<(&'n str, &'n str)> {
    let rest = match company {
        Some(company) => name.strip_prefix(company)?.strip_prefix('.')?,
        None => name,
    };
    let mut parts = rest.split('.');
    let (domain, action, version) = (parts.next()?, parts.next()?, parts.next()?);
    let fits = parts.next().is_none()
        && is_part(domain)
        && is_part(action)
        && version.starts_with('v')
        && words::is_version(version);
    fits.then_some((domain, action))
}

fn is_part(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_lowercase())
        && !part.ends_with(['-', '_'])
        && part
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter))
}

/// The action is the deed and what follows it: of `PaymentFailedFinal` it is `payment.failed_final`.
fn suggestion(company: Option<&str>, name: &str) -> Option<String> {
    let own = company.and_then(|company| name.strip_prefix(company)).unwrap_or(name);
    let mut words = words::lower(own);
    let version = match words.last() {
        Some(last) if words::is_version(last) => words.pop()?,
        _ => "v1".to_owned(),
    };
    let at = past_tense::deed(&words).filter(|at| *at > 0).unwrap_or(words.len().saturating_sub(1));
    let (domain, action) = words.split_at_checked(at)?;
    let suggested = prefixed(company, &format!("{}.{}.{version}", domain.join("_"), action.join("_")));
    parts(company, &suggested).is_some().then_some(suggested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_domain_action_and_version_are_accepted() {
        for (company, name) in [
            (Some("loopers"), "loopers.order.paid.v1"),
            (Some("loopers"), "loopers.like.canceled.v12"),
            (Some("loopers"), "loopers.purchase_order.partly-paid.v1"),
            (Some("com.example"), "com.example.stock.depleted.v2"),
            (None, "order.paid.v1"),
        ] {
            assert!(check(company, name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_refused_comes_with_what_would_be_right() {
        for (name, right) in [
            ("OrderPaid", Some("loopers.order.paid.v1")),
            ("OrderPaidV2", Some("loopers.order.paid.v2")),
            ("PaymentFailedFinal", Some("loopers.payment.failed_final.v1")),
            ("PURCHASE_ORDER_PAID", Some("loopers.purchase_order.paid.v1")),
            ("order.paid.v1", Some("loopers.order.paid.v1")),
            ("loopers.order.paid", Some("loopers.order.paid.v1")),
            ("loopers.Order.Paid.v1", Some("loopers.order.paid.v1")),
            ("loopers.order.paid.1", None),
            ("loopers.order.paid.v0", None),
            ("Order", None),
            ("", None),
        ] {
            let refusal = check(Some("loopers"), name).expect_err(name);
            if right.is_some() {
                assert_eq!(refusal.suggestion(), right, "{refusal}");
            }
        }
        let sentence = check(Some("loopers"), "OrderPaid").expect_err("refused").to_string();
        assert_eq!(
            sentence,
            "`OrderPaid` must have the form `loopers.domain.action.vN`, in lower case: use `loopers.order.paid.v1`."
        );
    }
}
