//! The irregular verbs that the names of events may have.

/// A verb whose past is not made with `-ed`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Irregular {
    /// As it is in a command: `send`.
    pub(super) base: &'static str,
    /// As it is in "it went".
    pub(super) past: &'static str,
    /// As it is in "it was sent".
    pub(super) participle: &'static str,
}

/// The verb with this base.
pub(super) fn of_base(base: &str) -> Option<&'static Irregular> {
    IRREGULAR.binary_search_by_key(&base, |verb| verb.base).ok().map(|at| &IRREGULAR[at])
}

/// The verb with this past or participle.
pub(super) fn of_past(word: &str) -> Option<&'static Irregular> {
    IRREGULAR.iter().find(|verb| verb.past == word || verb.participle == word)
}

const fn verb(base: &'static str, past: &'static str, participle: &'static str) -> Irregular {
    Irregular { base, past, participle }
}

/// By base.
#[rustfmt::skip]
const IRREGULAR: &[Irregular] = &[
    verb("arise", "arose", "arisen"), verb("awake", "awoke", "awoken"), verb("bear", "bore", "borne"),
    verb("beat", "beat", "beaten"), verb("become", "became", "become"), verb("begin", "began", "begun"),
    verb("bend", "bent", "bent"), verb("bet", "bet", "bet"), verb("bid", "bid", "bid"),
    verb("bind", "bound", "bound"), verb("bite", "bit", "bitten"), verb("bleed", "bled", "bled"),
    verb("blow", "blew", "blown"), verb("break", "broke", "broken"), verb("breed", "bred", "bred"),
    verb("bring", "brought", "brought"), verb("broadcast", "broadcast", "broadcast"), verb("build", "built", "built"),
    verb("burst", "burst", "burst"), verb("buy", "bought", "bought"), verb("cast", "cast", "cast"),
    verb("catch", "caught", "caught"), verb("choose", "chose", "chosen"), verb("cling", "clung", "clung"),
    verb("come", "came", "come"), verb("creep", "crept", "crept"), verb("cut", "cut", "cut"),
    verb("deal", "dealt", "dealt"), verb("dig", "dug", "dug"), verb("do", "did", "done"),
    verb("draw", "drew", "drawn"), verb("drink", "drank", "drunk"), verb("drive", "drove", "driven"),
    verb("eat", "ate", "eaten"), verb("fall", "fell", "fallen"), verb("feed", "fed", "fed"),
    verb("feel", "felt", "felt"), verb("fight", "fought", "fought"), verb("find", "found", "found"),
    verb("flee", "fled", "fled"), verb("fling", "flung", "flung"), verb("fly", "flew", "flown"),
    verb("forbid", "forbade", "forbidden"), verb("forecast", "forecast", "forecast"),
    verb("foresee", "foresaw", "foreseen"), verb("forget", "forgot", "forgotten"),
    verb("forgive", "forgave", "forgiven"), verb("forgo", "forwent", "forgone"), verb("freeze", "froze", "frozen"),
    verb("get", "got", "gotten"), verb("give", "gave", "given"), verb("go", "went", "gone"),
    verb("grind", "ground", "ground"), verb("grow", "grew", "grown"), verb("hang", "hung", "hung"),
    verb("have", "had", "had"), verb("hear", "heard", "heard"), verb("hide", "hid", "hidden"),
    verb("hit", "hit", "hit"), verb("hold", "held", "held"), verb("hurt", "hurt", "hurt"),
    verb("input", "input", "input"), verb("keep", "kept", "kept"), verb("kneel", "knelt", "knelt"),
    verb("know", "knew", "known"), verb("lay", "laid", "laid"), verb("lead", "led", "led"),
    verb("leave", "left", "left"), verb("lend", "lent", "lent"), verb("let", "let", "let"),
    verb("light", "lit", "lit"), verb("lose", "lost", "lost"), verb("make", "made", "made"),
    verb("mean", "meant", "meant"), verb("meet", "met", "met"), verb("mislead", "misled", "misled"),
    verb("mistake", "mistook", "mistaken"), verb("offset", "offset", "offset"), verb("outbid", "outbid", "outbid"),
    verb("outgrow", "outgrew", "outgrown"), verb("outrun", "outran", "outrun"), verb("outsell", "outsold", "outsold"),
    verb("overcome", "overcame", "overcome"), verb("overdraw", "overdrew", "overdrawn"),
    verb("overhear", "overheard", "overheard"), verb("override", "overrode", "overridden"),
    verb("overrun", "overran", "overrun"), verb("oversee", "oversaw", "overseen"),
    verb("oversell", "oversold", "oversold"), verb("overtake", "overtook", "overtaken"),
    verb("overthrow", "overthrew", "overthrown"), verb("overwrite", "overwrote", "overwritten"),
    verb("partake", "partook", "partaken"), verb("pay", "paid", "paid"), verb("prepay", "prepaid", "prepaid"),
    verb("preset", "preset", "preset"), verb("proofread", "proofread", "proofread"),
    verb("prove", "proved", "proven"), verb("put", "put", "put"), verb("quit", "quit", "quit"),
    verb("read", "read", "read"), verb("rebid", "rebid", "rebid"), verb("rebind", "rebound", "rebound"),
    verb("rebroadcast", "rebroadcast", "rebroadcast"), verb("rebuild", "rebuilt", "rebuilt"),
    verb("redo", "redid", "redone"), verb("redraw", "redrew", "redrawn"), verb("regrow", "regrew", "regrown"),
    verb("remake", "remade", "remade"), verb("repay", "repaid", "repaid"), verb("reread", "reread", "reread"),
    verb("rerun", "reran", "rerun"), verb("resell", "resold", "resold"), verb("resend", "resent", "resent"),
    verb("reset", "reset", "reset"), verb("retake", "retook", "retaken"), verb("rethink", "rethought", "rethought"),
    verb("rewind", "rewound", "rewound"), verb("rewrite", "rewrote", "rewritten"), verb("ride", "rode", "ridden"),
    verb("ring", "rang", "rung"), verb("rise", "rose", "risen"), verb("run", "ran", "run"),
    verb("say", "said", "said"), verb("see", "saw", "seen"), verb("seek", "sought", "sought"),
    verb("sell", "sold", "sold"), verb("send", "sent", "sent"), verb("set", "set", "set"),
    verb("sew", "sewed", "sewn"), verb("shake", "shook", "shaken"), verb("shine", "shone", "shone"),
    verb("shoot", "shot", "shot"), verb("show", "showed", "shown"), verb("shrink", "shrank", "shrunk"),
    verb("shut", "shut", "shut"), verb("sing", "sang", "sung"), verb("sink", "sank", "sunk"),
    verb("sit", "sat", "sat"), verb("sleep", "slept", "slept"), verb("slide", "slid", "slid"),
    verb("sow", "sowed", "sown"), verb("speak", "spoke", "spoken"), verb("speed", "sped", "sped"),
    verb("spend", "spent", "spent"), verb("spin", "spun", "spun"), verb("split", "split", "split"),
    verb("spread", "spread", "spread"), verb("spring", "sprang", "sprung"), verb("stand", "stood", "stood"),
    verb("steal", "stole", "stolen"), verb("stick", "stuck", "stuck"), verb("sting", "stung", "stung"),
    verb("strike", "struck", "struck"), verb("strive", "strove", "striven"), verb("swear", "swore", "sworn"),
    verb("sweep", "swept", "swept"), verb("swell", "swelled", "swollen"), verb("swim", "swam", "swum"),
    verb("swing", "swung", "swung"), verb("take", "took", "taken"), verb("teach", "taught", "taught"),
    verb("tear", "tore", "torn"), verb("tell", "told", "told"), verb("think", "thought", "thought"),
    verb("throw", "threw", "thrown"), verb("typeset", "typeset", "typeset"), verb("unbind", "unbound", "unbound"),
    verb("undercut", "undercut", "undercut"), verb("undergo", "underwent", "undergone"),
    verb("underlie", "underlay", "underlain"), verb("underpay", "underpaid", "underpaid"),
    verb("understand", "understood", "understood"), verb("undertake", "undertook", "undertaken"),
    verb("underwrite", "underwrote", "underwritten"), verb("undo", "undid", "undone"),
    verb("unfreeze", "unfroze", "unfrozen"), verb("unset", "unset", "unset"), verb("unwind", "unwound", "unwound"),
    verb("uphold", "upheld", "upheld"), verb("wake", "woke", "woken"), verb("wear", "wore", "worn"),
    verb("weave", "wove", "woven"), verb("weep", "wept", "wept"), verb("win", "won", "won"),
    verb("wind", "wound", "wound"), verb("withdraw", "withdrew", "withdrawn"),
    verb("withhold", "withheld", "withheld"), verb("withstand", "withstood", "withstood"),
    verb("write", "wrote", "written"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_so_that_a_search_finds_every_verb() {
        assert!(IRREGULAR.is_sorted_by(|one, next| one.base < next.base));
        assert!(IRREGULAR.len() >= 150, "{} verbs", IRREGULAR.len());
    }
}
