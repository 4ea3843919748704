//! PascalCase in the past tense, as in `PaymentSucceeded`: what has happened, not what is wanted.

use super::verb_lists::{COMPOUNDS, CONDITIONS, ENDS, OUTCOMES, PARTICLES, REASONS, REQUESTS, THINGS};
use super::{NameRefusal, nouns, verbs, words};

/// Refuses what is not PascalCase, and what does not say in the past tense what has happened.
pub(super) fn check(name: &str) -> Result<(), NameRefusal> {
    if name.is_empty() {
        return Err(NameRefusal::new("An event name must not be empty".to_owned(), None));
    }
    if !words::is_pascal(name) {
        let pascal = words::pascal(&own_words(name));
        let suggestion =
            pascal.and_then(|name| if says_what_happened(&name) { Some(name) } else { in_past(&name) });
        let message = format!("`{name}` must be in PascalCase, with letters and digits only");
        return Err(NameRefusal::new(message, suggestion));
    }
    if says_what_happened(name) {
        return Ok(());
    }
    let message = format!("`{name}` must say in the past tense what has happened");
    Err(NameRefusal::new(message, in_past(name)))
}

/// Where the verb in the past is, among the words of an event's name.
pub(super) fn deed(words: &[String]) -> Option<usize> {
    if let [only] = words {
        return verbs::is_past(only).then_some(0);
    }
    // `CheckedIn`, `PaidInFull`
    if let [first, next, ..] = words
        && verbs::is_past(first)
        && !verbs::is_past_and_base(first)
        && words::says_how(next)
    {
        return Some(0);
    }
    // `SubmitBid` is a command, although `bid` is a past as well; so is `RetryFailedPayment`.
    let is_command = words.first().is_some_and(|first| verbs::is_only_a_verb(first));
    (1..words.len()).find(|at| {
        let word = &words[*at];
        verbs::is_past(word)
            && !(is_command && (verbs::is_past_and_base(word) || describes_a_thing(words, *at)))
            && !is_wanted(words, *at)
            && !is_noun(words, *at)
    })
}

/// Whether the past is what somebody wants, or what he wants it done with: `MarkOrderPaid`, `DeleteIfExpired`, `RefundFailedPayment`,
/// `OrderToBePaid`.
fn is_wanted(words: &[String], at: usize) -> bool {
    let [first, ..] = words else { return false };
    let before = words[at - 1].as_str();
    before == "be"
        || (verbs::is_verb(first) && CONDITIONS.contains(&before))
        || (first == "mark" && at > 1)
        || (at == 1
            && verbs::is_verb(first)
            && describes_a_thing(words, at)
            // `EmailInvitedUsers` is wanted, and `MessageDeletedBulk` has happened.
            && (!THINGS.contains(&first.as_str()) || words[at + 1].ends_with('s')))
}

/// Whether it is the end of a noun of two words, as in `ResultSet`.
fn is_noun(words: &[String], at: usize) -> bool {
    let last = at + 1 == words.len();
    last && COMPOUNDS
        .iter()
        .any(|[one, other]| (*one, *other) == (words[at - 1].as_str(), words[at].as_str()))
}

/// Whether the word is followed by what it says something about, as in `FailedPayment`.
pub(super) fn describes_a_thing(words: &[String], at: usize) -> bool {
    words.get(at + 1).is_some_and(|next| !words::says_how(next) && !says_why(&words[at], next))
}

/// Whether a word after how something ended begins the reason, as in `UploadFailedTooLarge`.
fn says_why(end: &str, next: &str) -> bool {
    ENDS.contains(&end) && REASONS.contains(&next)
}

fn says_what_happened(name: &str) -> bool {
    deed(&words::lower(name)).is_some()
}

/// The words without the company and the version of a name like `loopers.order.paid.v1`.
fn own_words(name: &str) -> Vec<&str> {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        [_, own @ .., version] if own.len() >= 2 && words::is_version(version) => {
            own.iter().flat_map(|part| words::split(part)).collect()
        }
        _ => words::split(name),
    }
}

/// The name that says the same in the past tense, if its verb is known.
fn in_past(name: &str) -> Option<String> {
    let spelled = words::split(name);
    let lower = words::lower(name);
    let (first, rest) = lower.split_first()?;
    let (last, before) = lower.split_last()?;
    if rest.is_empty() {
        return None;
    }
    if verbs::is_past(first) {
        return moved_past(&spelled[1..], first, None);
    }
    if begins_like_a_command(first, rest, last) {
        return moved(&spelled, first);
    }
    if let Some(base) = nouns::verb_of(last).or_else(|| known(last)) {
        return replaced(&spelled, before.len(), &base);
    }
    // `UserLogIn`, `UserLogsIn`
    if let Some(at) = lower.iter().skip(1).position(|word| words::is_preposition(word))
        && at > 0
        && let Some(base) = verbs::base_of_present(&lower[at])
    {
        return replaced(&spelled, at, &base);
    }
    moved(&spelled, &known(first)?)
}

/// Whether the first word says what to do, rather than what it was done to.
fn begins_like_a_command(first: &str, rest: &[String], last: &str) -> bool {
    let asks = REQUESTS.contains(&first) && !OUTCOMES.contains(&last);
    let about_a_past_thing = verbs::is_verb(first) && rest.len() > 1 && verbs::is_past(&rest[0]);
    verbs::is_only_a_verb(first) || asks || about_a_past_thing
}

/// The base of a verb that names no thing.
fn known(word: &str) -> Option<String> {
    verbs::base_of_present(word).filter(|base| !THINGS.contains(&base.as_str()))
}

/// The verb in the past after what it was done to: of `AddItemToCart` it is `ItemAddedToCart`, of `LogInUser` `UserLoggedIn`.
fn moved(spelled: &[&str], base: &str) -> Option<String> {
    let past = verbs::past_of(base);
    match &spelled[1..] {
        [particle, rest @ ..] if PARTICLES.contains(&particle.to_lowercase().as_str()) => {
            moved_past(rest, &past, Some(particle))
        }
        rest => moved_past(rest, &past, None),
    }
}

fn moved_past(rest: &[&str], past: &str, particle: Option<&str>) -> Option<String> {
    let end = rest.iter().position(|word| words::is_preposition(&word.to_lowercase()));
    let end = end.filter(|end| *end > 0).unwrap_or(rest.len());
    let mut name = rest[..end].to_vec();
    name.push(past);
    name.extend(particle);
    name.extend(&rest[end..]);
    accepted(&name)
}

/// The word at a place replaced by its verb in the past: `log in` becomes `LoggedIn`.
fn replaced(spelled: &[&str], at: usize, base: &str) -> Option<String> {
    let (verb, particle) =
        base.split_once(' ').map_or((base, None), |(verb, particle)| (verb, Some(particle)));
    let past = verbs::past_of(verb);
    let mut name = spelled[..at].to_vec();
    name.push(&past);
    name.extend(particle);
    name.extend(&spelled[at + 1..]);
    accepted(&name)
}

/// Only what passes is offered.
fn accepted(words: &[&str]) -> Option<String> {
    words::pascal(words).filter(|name| says_what_happened(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: &[&str] = &[
        "OrderPaid",
        "MailSent",
        "PaymentFailedFinal",
        "MemberJoinedViaWebJoin",
        "PasswordReset",
        "PriceSet",
        "TrialBegan",
        "ServerWentDown",
        "InvoiceUnpaid",
        "OrderCancelled",
        "OrderCanceled",
        "SMSSent",
        "OAuthTokenIssued",
        "FeedUpdated",
        "SeedPlanted",
        "AccountFrozen",
        "MoneyWithdrawn",
        "DeleteAccountRequested",
        "CreateUserFailed",
        "RestoreFailedFinal",
        "UserLoggedIn",
        "AntiNukeActioned",
        "Deposited",
        "TransferCompleted",
        "OrderPaidV2",
        "StockFellBelowMinimum",
        "CheckedIn",
        "PaidInFull",
        "UserCreated2",
        "TermsAgreed",
        "BidPlaced",
        "BidWon",
        "RefundFailed",
        "MessageRead",
        "BudgetUnderspent",
        "ProductUndersold",
        "VideoShot",
        "BeanGround",
        "CaseWoundUp",
        "RightForgone",
        "WireStrung",
        "SeedSown",
        "ItemRebought",
        "AccountRefrozen",
        "SeatsPresold",
        "LimitOutspent",
        "TokenBurnt",
        "StopLossHit",
        "StopPriceSet",
        "ReorderPointSet",
        "MonitorReset",
        "LockReset",
        "ArchiveSplit",
        "CaptureFailedPartial",
        "MergeFailedConflict",
        "RestoreStartedManual",
        "MessageDeletedBulk",
        "TransferFailedInsufficientFunds",
        "ChargeFailedThreeTimes",
        "RefundRejectedMissingReceipt",
        "UploadFailedTooLarge",
        "TransferDeclinedFraud",
        "CreateUserFailedTooManyUsers",
    ];

    #[test]
    fn what_has_happened_is_accepted() {
        for name in ACCEPTED {
            assert_eq!(check(name).map_err(|refusal| refusal.to_string()), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_is_refused_comes_with_what_would_be_right() {
        for (name, right) in [
            ("PaymentSuccess", Some("PaymentSucceeded")),
            ("PaymentFailure", Some("PaymentFailed")),
            ("PayInvoice", Some("InvoicePaid")),
            ("SendMail", Some("MailSent")),
            ("payment_failed", Some("PaymentFailed")),
            ("paymentFailed", Some("PaymentFailed")),
            ("PAYMENT_FAILED", Some("PaymentFailed")),
            ("payment failed", Some("PaymentFailed")),
            ("Payment-Failed", Some("PaymentFailed")),
            ("loopers.order.paid.v1", Some("OrderPaid")),
            ("pay_invoice", Some("InvoicePaid")),
            ("OrderPayment", Some("OrderPaid")),
            ("SendPayment", Some("PaymentSent")),
            ("OrderCreation", Some("OrderCreated")),
            ("OrderCreate", Some("OrderCreated")),
            ("CreateOrder", Some("OrderCreated")),
            ("ShipOrder", Some("OrderShipped")),
            ("OrderShip", Some("OrderShipped")),
            ("OrderRefund", Some("OrderRefunded")),
            ("RefundOrder", Some("OrderRefunded")),
            ("OrderProcessing", Some("OrderProcessed")),
            ("UserRegistration", Some("UserRegistered")),
            ("UserLogin", Some("UserLoggedIn")),
            ("UserLogsIn", Some("UserLoggedIn")),
            ("AddItemToCart", Some("ItemAddedToCart")),
            ("PaidInvoice", Some("InvoicePaid")),
            ("ProcessPayment", Some("PaymentProcessed")),
            ("RequestRefund", Some("RefundRequested")),
            ("RequestApproval", Some("RequestApproved")),
            ("SignUpUser", Some("UserSignedUp")),
            ("TradeSettlement", Some("TradeSettled")),
            ("VideoEmbed", Some("VideoEmbedded")),
            ("CheckIn", Some("CheckedIn")),
            ("RetryFailedPayment", Some("FailedPaymentRetried")),
            ("SubmitBid", Some("BidSubmitted")),
            ("SetPrice", Some("PriceSet")),
            ("ResetPassword", Some("PasswordReset")),
            ("SubscriptionRenewal", Some("SubscriptionRenewed")),
            ("AccountVerification", Some("AccountVerified")),
            ("2FAEnabled", Some("TwoFAEnabled")),
            ("OrderPaid!", Some("OrderPaid")),
            ("NewsFeed", None),
            ("CustomerNeed", None),
            ("TopSpeed", None),
            ("RandomSeed", None),
            ("OrderItem", None),
            ("Payment", None),
            ("X", None),
            ("결제완료", None),
            ("", None),
            (" ", None),
        ] {
            let refusal = check(name).expect_err(name);
            assert_eq!(refusal.suggestion(), right, "{name}: {refusal}");
        }
    }

    #[test]
    fn a_wish_a_condition_and_a_noun_have_not_happened() {
        for name in [
            "DeleteAllExpiredTokens",
            "CancelAllUnpaidOrders",
            "SendEmailToRegisteredUsers",
            "RefundFailedPayment",
            "ChargeFailedCard",
            "RefundDeclinedOrders",
            "RetryFailedUploads",
            "ListCreatedOrders",
            "DeleteIfExpired",
            "NotifyWhenPaid",
            "MarkOrderPaid",
            "MarkAsRead",
            "WillBePaid",
            "MustBePaid",
            "OrderToBePaid",
            "DataSet",
            "ResultSet",
            "UserInput",
            "TopicOffset",
            "WeatherForecast",
            "JobRun",
            "MarketSpread",
            "ColorPreset",
            "HeartBeat",
            "ParityBit",
            "HotelSunbed",
            "OrderPresent",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
