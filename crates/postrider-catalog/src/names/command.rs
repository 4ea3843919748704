//! Commands in PascalCase, as in `PayInvoice`: what is wanted, not what has happened.

use super::verb_lists::{ATTRIBUTES, OWNERS, THINGS};
use super::{NameRefusal, nouns, past_tense, verbs, words};

/// Refuses what is not PascalCase, and what does not begin with a verb that asks for something.
pub(super) fn check(name: &str) -> Result<(), NameRefusal> {
    if name.is_empty() {
        return Err(NameRefusal::new("A command name must not be empty".to_owned(), None));
    }
    if !words::is_pascal(name) {
        let pascal = words::pascal(&words::split(name));
        let suggestion = pascal.and_then(|name| if asks(&name) { Some(name) } else { as_command(&name) });
        let message = format!("`{name}` must be in PascalCase, with letters and digits only");
        return Err(NameRefusal::new(message, suggestion));
    }
    if asks(name) {
        return Ok(());
    }
    let message = format!("`{name}` must begin with a verb that says what to do");
    Err(NameRefusal::new(message, as_command(name)))
}

fn asks(name: &str) -> bool {
    let words = words::lower(name);
    let Some(first) = words.first() else { return false };
    // `Rollback` is `roll back`.
    let is_phrase = nouns::verb_of(first).is_some_and(|verb| verb.contains(' '));
    let is_phrase = is_phrase || matches!(&*words, [back, up, _, ..] if back == "back" && up == "up");
    if (!verbs::is_verb(first) && !looks_like_a_verb(first) && !is_phrase) || names_a_thing(&words) {
        return false;
    }
    // `OrderPaid` and `CreateUserFailed` have happened; `SubmitBid` and `ChargeFailedCard` are wanted.
    past_tense::deed(&words).is_none_or(|at| {
        let is_about_it = verbs::is_past_and_base(&words[at]) || past_tense::describes_a_thing(&words, at);
        (at == 0 && verbs::is_past_and_base(first))
            || (at > 0 && is_about_it && !THINGS.contains(&first.as_str()))
    })
}

/// Whether it is about a thing and asks for nothing, as `OrderCancellation` and `OrderStatus` do.
fn names_a_thing(words: &[String]) -> bool {
    let [first, .., last] = words else { return false };
    OWNERS.contains(&first.as_str())
        && (nouns::verb_of(last).is_some() || ATTRIBUTES.contains(&last.as_str()))
}

/// Verbs that no list has, by how they end.
fn looks_like_a_verb(word: &str) -> bool {
    word.len() > 4 && ["ize", "ise", "ify", "ate"].iter().any(|ending| word.ends_with(ending))
}

/// The command that leads to the event: of `InvoicePaid` it is `PayInvoice`.
fn as_command(name: &str) -> Option<String> {
    let spelled = words::split(name);
    let lower = words::lower(name);
    let at = past_tense::deed(&lower).or_else(|| verbs::is_past(lower.first()?).then_some(0));
    let command = match at {
        Some(at) if at > 0 && verbs::is_only_a_verb(&lower[0]) => spelled[..at].join(" "),
        Some(at) => {
            let base = verbs::base_of(&lower[at])?;
            [&[base.as_str()], &spelled[..at], &spelled[at + 1..]].concat().join(" ")
        }
        None => by_last_word(&spelled, &lower)?,
    };
    words::pascal(&words::split(&command)).filter(|name| asks(name))
}

/// Of `OrderPayment` it is `PayOrder`, of `PayingInvoice` it is `PayInvoice`.
fn by_last_word(spelled: &[&str], lower: &[String]) -> Option<String> {
    let (first, (last, before)) = (lower.first()?, lower.split_last()?);
    if let Some(base) = verbs::base_of_present(first).filter(|base| base != first) {
        return Some([&[base.as_str()], &spelled[1..]].concat().join(" "));
    }
    let base = nouns::verb_of(last).or_else(|| verbs::is_verb(last).then(|| last.clone()))?;
    let base = base.split(' ').next()?;
    (!before.is_empty()).then(|| [&[base], &spelled[..before.len()]].concat().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_what_to_do_is_accepted() {
        for name in [
            "PayInvoice",
            "SendMail",
            "CreateOrderAttempt",
            "CancelSubscription",
            "RetryFailedPayment",
            "ChargeFailedCard",
            "SubmitBid",
            "OrderProduct",
            "ResetPassword",
            "SetPrice",
            "Restart",
            "ReactivateAccount",
            "RunBacktest",
            "TokenizeCard",
            "StopTrading",
            "ScheduleBroadcast",
            "RollbackDeployment",
            "LogInUser",
            "Ping",
            "MarkOrderPaid",
            "DeleteIfExpired",
            "EmailInvitedUsers",
            "BackUpDatabase",
            "SeedDatabase",
            "RemitFunds",
            "MaskPayload",
            "RedactMessage",
            "LeaseVehicle",
            "HedgePosition",
            "StakeTokens",
            "HashPassword",
            "BumpVersion",
        ] {
            assert_eq!(check(name).map_err(|refusal| refusal.to_string()), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_is_refused_comes_with_what_would_be_right() {
        for (name, right) in [
            ("InvoicePaid", Some("PayInvoice")),
            ("OrderAccepted", Some("AcceptOrder")),
            ("OrderShipped", Some("ShipOrder")),
            ("pay_invoice", Some("PayInvoice")),
            ("invoice_paid", Some("PayInvoice")),
            ("PAY_INVOICE", Some("PayInvoice")),
            ("PayingInvoice", Some("PayInvoice")),
            ("AccountVerification", Some("VerifyAccount")),
            ("PaidInvoice", Some("PayInvoice")),
            ("PriceSet", Some("SetPrice")),
            ("PasswordReset", Some("ResetPassword")),
            ("CreateUserFailed", Some("CreateUser")),
            ("MemberJoinedViaWebJoin", Some("JoinMemberViaWebJoin")),
            ("OrderCancellation", Some("CancelOrder")),
            ("InvoicePayment", Some("PayInvoice")),
            ("OrderCreation", Some("CreateOrder")),
            ("OrderStatus", None),
            ("PriceChange", Some("ChangePrice")),
            ("TicketList", Some("ListTicket")),
            ("Customer", None),
            ("", None),
        ] {
            let refusal = check(name).expect_err(name);
            assert_eq!(refusal.suggestion(), right, "{name}: {refusal}");
        }
        let sentence = check("InvoicePaid").expect_err("an event").to_string();
        assert_eq!(sentence, "`InvoicePaid` must begin with a verb that says what to do: use `PayInvoice`.");
    }
}
