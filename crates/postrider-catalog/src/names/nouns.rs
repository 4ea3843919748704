//! Nouns that stand for what happened, and their verbs.

/// The verb of a noun, as it is in a command: of `success` it is `succeed`, of `login` `log in`.
pub(super) fn verb_of(noun: &str) -> Option<String> {
    if let Ok(at) = NOUNS.binary_search_by_key(&noun, |(noun, _)| noun) {
        return Some(NOUNS[at].1.to_owned());
    }
    // Of many nouns the verb follows from how they end.
    let ends = |ending: &str, with: &str| Some(format!("{}{with}", noun.strip_suffix(ending)?));
    ends("ification", "ify").or_else(|| ends("ization", "ize")).or_else(|| {
        let verb = ends("ation", "ate")?;
        super::verbs::is_only_a_verb(&verb).then_some(verb)
    })
}

/// By noun. What is regular (`creation`, `authorization`) is not here.
#[rustfmt::skip]
const NOUNS: &[(&str, &str)] = &[
    ("acceptance", "accept"), ("accrual", "accrue"), ("acknowledgement", "acknowledge"),
    ("acknowledgment", "acknowledge"), ("acquisition", "acquire"), ("addition", "add"), ("adjustment", "adjust"),
    ("admission", "admit"), ("adoption", "adopt"), ("agreement", "agree"), ("allowance", "allow"),
    ("amendment", "amend"), ("analysis", "analyze"), ("announcement", "announce"), ("appointment", "appoint"),
    ("approval", "approve"), ("arrival", "arrive"), ("assessment", "assess"), ("assignment", "assign"),
    ("attachment", "attach"), ("attendance", "attend"), ("backup", "back up"), ("beginning", "begin"),
    ("blockage", "block"), ("booking", "book"), ("breakage", "break"), ("build", "build"), ("cancelation", "cancel"),
    ("cancellation", "cancel"), ("checkin", "check in"), ("checkout", "check out"), ("closing", "close"),
    ("closure", "close"), ("collection", "collect"), ("commitment", "commit"), ("comparison", "compare"),
    ("completion", "complete"), ("compression", "compress"), ("conclusion", "conclude"), ("confirmation", "confirm"),
    ("connection", "connect"), ("consumption", "consume"), ("contribution", "contribute"), ("conversion", "convert"),
    ("correction", "correct"), ("decision", "decide"), ("deduction", "deduct"), ("deferral", "defer"),
    ("definition", "define"), ("deletion", "delete"), ("delivery", "deliver"), ("denial", "deny"),
    ("departure", "depart"), ("depletion", "deplete"), ("deployment", "deploy"), ("description", "describe"),
    ("detachment", "detach"), ("detection", "detect"), ("development", "develop"), ("disbursement", "disburse"),
    ("disclosure", "disclose"), ("disconnection", "disconnect"), ("discovery", "discover"), ("dismissal", "dismiss"),
    ("disposal", "dispose"), ("disqualification", "disqualify"), ("distribution", "distribute"),
    ("division", "divide"), ("donation", "donate"), ("encryption", "encrypt"), ("endorsement", "endorse"),
    ("enforcement", "enforce"), ("engagement", "engage"), ("enlistment", "enlist"), ("enrollment", "enroll"),
    ("enrolment", "enroll"), ("entry", "enter"), ("establishment", "establish"), ("eviction", "evict"),
    ("exclusion", "exclude"), ("execution", "execute"), ("exhaustion", "exhaust"), ("expansion", "expand"),
    ("expiration", "expire"), ("expiry", "expire"), ("explanation", "explain"), ("exposure", "expose"),
    ("extension", "extend"), ("extraction", "extract"), ("failure", "fail"), ("fault", "fail"), ("flight", "fly"),
    ("forfeiture", "forfeit"), ("fulfillment", "fulfill"), ("fulfilment", "fulfill"), ("growth", "grow"),
    ("handover", "hand over"), ("implementation", "implement"), ("imposition", "impose"), ("inclusion", "include"),
    ("injection", "inject"), ("insertion", "insert"), ("inspection", "inspect"), ("installation", "install"),
    ("instruction", "instruct"), ("interruption", "interrupt"), ("introduction", "introduce"),
    ("invitation", "invite"), ("involvement", "involve"), ("listing", "list"), ("login", "log in"),
    ("logoff", "log off"), ("logon", "log on"), ("logout", "log out"), ("loss", "lose"), ("measurement", "measure"),
    ("meeting", "meet"), ("merger", "merge"), ("modification", "modify"), ("movement", "move"), ("omission", "omit"),
    ("onboarding", "onboard"), ("opening", "open"), ("optin", "opt in"), ("optout", "opt out"),
    ("override", "override"), ("payment", "pay"), ("payout", "pay out"), ("performance", "perform"),
    ("placement", "place"), ("posting", "post"), ("prepayment", "prepay"), ("prevention", "prevent"),
    ("procurement", "procure"), ("production", "produce"), ("prohibition", "prohibit"), ("projection", "project"),
    ("promotion", "promote"), ("proof", "prove"), ("proposal", "propose"), ("protection", "protect"),
    ("publication", "publish"), ("publishing", "publish"), ("qualification", "qualify"), ("reaction", "react"),
    ("reboot", "reboot"), ("rebuild", "rebuild"), ("receipt", "receive"), ("reception", "receive"),
    ("recognition", "recognize"), ("recommendation", "recommend"), ("reconciliation", "reconcile"),
    ("recovery", "recover"), ("redemption", "redeem"), ("redirection", "redirect"), ("reduction", "reduce"),
    ("referral", "refer"), ("refusal", "refuse"), ("registration", "register"), ("reimbursement", "reimburse"),
    ("rejection", "reject"), ("reminder", "remind"), ("removal", "remove"), ("renewal", "renew"),
    ("repayment", "repay"), ("replacement", "replace"), ("replenishment", "replenish"), ("repossession", "repossess"),
    ("requirement", "require"), ("resale", "resell"), ("reservation", "reserve"), ("resignation", "resign"),
    ("resolution", "resolve"), ("response", "respond"), ("restart", "restart"), ("restoration", "restore"),
    ("restriction", "restrict"), ("resumption", "resume"), ("retention", "retain"), ("retirement", "retire"),
    ("retrieval", "retrieve"), ("reversal", "reverse"), ("revision", "revise"), ("revival", "revive"),
    ("revocation", "revoke"), ("rollback", "roll back"), ("rollout", "roll out"), ("sale", "sell"),
    ("selection", "select"), ("sending", "send"), ("separation", "separate"), ("settlement", "settle"),
    ("setup", "set up"), ("shipment", "ship"), ("shipping", "ship"), ("shutdown", "shut down"), ("signature", "sign"),
    ("signin", "sign in"), ("signoff", "sign off"), ("signout", "sign out"), ("signup", "sign up"),
    ("specification", "specify"), ("start", "start"), ("startup", "start up"), ("stop", "stop"), ("storage", "store"),
    ("submission", "submit"), ("subscription", "subscribe"), ("success", "succeed"), ("suggestion", "suggest"),
    ("supply", "supply"), ("suspension", "suspend"), ("takeover", "take over"), ("theft", "steal"),
    ("topup", "top up"), ("transformation", "transform"), ("transition", "transition"), ("transmission", "transmit"),
    ("treatment", "treat"), ("unlock", "unlock"), ("upgrading", "upgrade"), ("usage", "use"), ("use", "use"),
    ("variation", "vary"), ("verification", "verify"), ("violation", "violate"), ("warning", "warn"),
    ("withdrawal", "withdraw"), ("writeoff", "write off"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_a_search_finds_every_noun() {
        assert!(NOUNS.is_sorted_by(|(one, _), (next, _)| one < next));
    }

    #[test]
    fn a_noun_has_its_verb() {
        for (noun, verb) in [
            ("success", Some("succeed")),
            ("failure", Some("fail")),
            ("creation", Some("create")),
            ("payment", Some("pay")),
            ("authorization", Some("authorize")),
            ("notification", Some("notify")),
            ("login", Some("log in")),
            ("station", None),
            ("invoice", None),
        ] {
            assert_eq!(verb_of(noun).as_deref(), verb, "{noun}");
        }
    }
}
