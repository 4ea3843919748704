//! The verbs that are known, and what is special about some of them. Words are in lower case.

/// What may stand before a verb.
#[rustfmt::skip]
pub(super) const PREFIXES: &[&str] = &[
    "auto", "co", "de", "dis", "mis", "over", "pre", "re", "un", "under",
];

/// What happens without anyone who does it: a trial *began*, where a letter was *written*.
#[rustfmt::skip]
pub(super) const HAPPEN_BY_THEMSELVES: &[&str] = &[
    "arise", "become", "begin", "come", "fall", "flee", "go", "grow", "rise", "shrink", "sink", "speak",
];

/// Verbs whose base ends with `ee`.
#[rustfmt::skip]
pub(super) const ENDS_IN_EE: &[&str] = &[
    "agree", "decree", "disagree", "free", "guarantee", "knee", "referee", "tee",
];

/// Verbs of several syllables that double their last letter.
#[rustfmt::skip]
pub(super) const DOUBLING: &[&str] = &[
    "admit", "commit", "compel", "concur", "confer", "control", "defer", "embed", "emit", "enrol", "equip", "expel",
    "format", "incur", "infer", "occur", "omit", "patrol", "permit", "prefer", "quit", "rebut", "recommit", "recur",
    "refer", "regret", "remit", "resubmit", "submit", "transfer", "transmit", "unban", "unpin", "unplug", "unwrap",
];

/// Words that end like a past and are none.
#[rustfmt::skip]
pub(super) const NOT_PAST: &[&str] = &[
    "ahmed", "alfred", "beloved", "biped", "bloodshed", "bobsled", "coed", "crooked", "embed", "flatbed", "hatred",
    "hotbed", "hundred", "imbed", "infrared", "jagged", "kindred", "mohammed", "moped", "naked", "newlywed",
    "quadruped", "ragged", "riverbed", "rugged", "sacred", "seabed", "testbed", "watershed", "wicked", "wretched",
];

/// Irregular verbs that are nouns too.
#[rustfmt::skip]
pub(super) const IRREGULAR_NOUNS: &[&str] = &[
    "bet", "bid", "bite", "blow", "break", "broadcast", "build", "burst", "buy", "cast", "catch", "cut", "deal", "draw",
    "drink", "drive", "fall", "feed", "feel", "fight", "find", "fly", "forecast", "grind", "hit", "hold", "hurt",
    "input", "keep", "lead", "light", "offset", "override", "preset", "proof", "read", "rebuild", "rerun", "reset",
    "rewrite", "ride", "ring", "rise", "run", "set", "shake", "shoot", "show", "shut", "sink", "sleep", "slide",
    "speed", "spin", "split", "spread", "spring", "stand", "steal", "stick", "sting", "strike", "sweep", "swing",
    "take", "tear", "throw", "wake", "wear", "win", "wind",
];

/// Regular verbs that are no nouns, or seldom: a name that begins with one is a command. By letters.
#[rustfmt::skip]
pub(super) const ONLY_VERBS: &[&str] = &[
    "abandon", "abort", "absorb", "accept", "accumulate", "achieve", "acknowledge", "acquire", "activate", "adapt",
    "add", "adjust", "admit", "adopt", "advertise", "affirm", "aggregate", "agree", "allocate", "allow", "alter",
    "amend", "analyze", "annotate", "announce", "anonymize", "append", "apply", "appoint", "appraise", "approve",
    "arrange", "arrive", "ask", "assemble", "assert", "assess", "assign", "associate", "assume", "attach", "attend",
    "authenticate", "authorize", "automate", "avoid", "bootstrap", "borrow", "burn", "calculate", "calibrate", "cancel",
    "categorize", "cease", "certify", "clarify", "classify", "clean", "clear", "clone", "close", "collect", "combine",
    "commence", "commit", "compare", "compensate", "compile", "complete", "compose", "compress", "compute", "conclude",
    "configure", "confirm", "confiscate", "connect", "consolidate", "consume", "contain", "contribute", "convert",
    "correct", "crawl", "create", "cure", "customize", "deactivate", "debug", "decide", "declare", "decline",
    "decommission", "decompress", "decrypt", "deduct", "deduplicate", "defer", "define", "delegate", "delete",
    "deliver", "demote", "denormalize", "deny", "deplete", "deploy", "deprecate", "deprovision", "derive", "describe",
    "deserialize", "detach", "detect", "determine", "diagnose", "disable", "disapprove", "disburse", "discard",
    "disclose", "disconnect", "discontinue", "discover", "dismiss", "dispatch", "dispense", "dispose", "dissolve",
    "distribute", "divide", "donate", "drain", "duplicate", "earn", "elapse", "elect", "elevate", "eliminate", "embed",
    "emit", "employ", "empty", "enable", "encode", "encrypt", "endorse", "enforce", "engage", "enlarge", "enqueue",
    "enrich", "enroll", "ensure", "enter", "enumerate", "erase", "escalate", "establish", "evaluate", "evict",
    "examine", "exceed", "exclude", "execute", "exhaust", "expand", "expect", "expedite", "expel", "expire", "explain",
    "expose", "extend", "facilitate", "fail", "fetch", "fill", "finalize", "finish", "flush", "follow", "forfeit",
    "fulfill", "gather", "generate", "grab", "grant", "guess", "handle", "highlight", "hire", "identify", "ignore",
    "implement", "impose", "improve", "include", "increment", "inform", "inherit", "initialize", "initiate", "inject",
    "insert", "inspect", "install", "instruct", "insure", "integrate", "interrupt", "introduce", "invalidate",
    "investigate", "invite", "invoke", "involve", "isolate", "iterate", "join", "justify", "kill", "leap", "learn",
    "liquidate", "listen", "load", "locate", "lower", "maintain", "manage", "materialize", "migrate", "mint",
    "mitigate", "modify", "multiply", "mute", "negotiate", "normalize", "notify", "obtain", "occur", "omit", "onboard",
    "open", "optimize", "orchestrate", "organize", "originate", "own", "parse", "participate", "perform", "persist",
    "place", "postpone", "prefer", "prepare", "prescribe", "preserve", "prevent", "prioritize", "privatize", "proceed",
    "procure", "produce", "prohibit", "promote", "propagate", "propose", "protect", "provide", "provision", "prune",
    "publish", "pull", "push", "qualify", "quarantine", "randomize", "react", "reactivate", "reallocate", "reassign",
    "reauthorize", "rebalance", "recalculate", "receive", "reclaim", "recognize", "recommend", "reconcile",
    "reconfigure", "reconnect", "recover", "recruit", "rectify", "recycle", "redact", "redeem", "redeploy", "redirect",
    "reduce", "reevaluate", "refer", "refine", "refresh", "refuse", "regenerate", "register", "reimburse", "reindex",
    "reinstall", "reinstate", "reissue", "reject", "relate", "relay", "relinquish", "relocate", "remain", "remind",
    "remit", "remove", "rename", "render", "renew", "renounce", "reopen", "reorganize", "replace", "replay",
    "replenish", "replicate", "repossess", "represent", "reprocess", "require", "reschedule", "resign", "resolve",
    "respond", "restart", "restock", "restrict", "restructure", "resubmit", "resubscribe", "resume", "retain", "retire",
    "retrieve", "retry", "reuse", "revert", "revise", "revoke", "rotate", "sanction", "satisfy", "save", "secure",
    "seize", "select", "separate", "serialize", "serve", "settle", "simulate", "skip", "solve", "spawn", "specify",
    "spoil", "start", "strengthen", "submit", "subscribe", "subtract", "succeed", "suggest", "summarize", "supersede",
    "suspend", "sustain", "synchronize", "terminate", "throttle", "toggle", "tokenize", "translate", "transmit", "trim",
    "truncate", "tune", "unassign", "unban", "unblock", "uninstall", "unlink", "unlock", "unmute", "unpublish",
    "unregister", "unsubscribe", "unsuspend", "upsert", "vaccinate", "validate", "vary", "verify", "violate", "waive",
    "warn", "weaken", "weigh", "wipe", "zip",
];

/// Regular verbs that are nouns too, such as `order`. By letters.
#[rustfmt::skip]
pub(super) const NOUNS_TOO: &[&str] = &[
    "access", "action", "address", "advance", "alert", "answer", "appeal", "archive", "attack", "attempt", "audit",
    "award", "balance", "ban", "bill", "block", "book", "boost", "bounce", "bump", "cache", "call", "cap", "capture",
    "challenge", "change", "charge", "check", "claim", "click", "code", "comment", "conflict", "contact", "contract",
    "control", "copy", "credit", "damage", "date", "debit", "decrease", "delay", "demand", "deposit", "design",
    "discount", "dispute", "downgrade", "download", "drop", "edit", "email", "end", "estimate", "exchange", "exit",
    "export", "extract", "file", "filter", "fine", "fix", "flag", "flow", "focus", "fork", "format", "forward", "fund",
    "grade", "group", "guarantee", "guard", "hash", "hedge", "host", "import", "increase", "index", "invoice", "issue",
    "judge", "jump", "kick", "label", "launch", "lease", "license", "like", "limit", "link", "list", "loan", "lock",
    "log", "mail", "map", "mark", "mask", "match", "measure", "merge", "message", "mine", "monitor", "mount", "move",
    "name", "note", "notice", "number", "offer", "order", "outline", "pack", "package", "park", "pass", "patch",
    "pause", "permit", "phone", "pick", "pin", "ping", "plan", "play", "plot", "plug", "point", "poll", "pool", "post",
    "practice", "present", "press", "price", "print", "process", "profile", "program", "project", "promise", "protest",
    "punch", "purchase", "purge", "query", "question", "queue", "quote", "raise", "rank", "rate", "reach", "rebate",
    "recall", "record", "refund", "release", "rent", "reorder", "repair", "reply", "report", "request", "rescue",
    "research", "reserve", "rest", "restore", "return", "reverse", "review", "reward", "ride", "risk", "roll", "route",
    "rule", "sample", "scale", "scan", "schedule", "score", "screen", "seal", "search", "seat", "seed", "service",
    "shape", "share", "shift", "ship", "shop", "sign", "signal", "snapshot", "sort", "sound", "source", "spin",
    "sponsor", "spot", "stack", "staff", "stage", "stake", "stall", "stamp", "state", "stay", "stock", "stop", "store",
    "stream", "strike", "study", "style", "supply", "support", "survey", "swap", "switch", "sync", "tag", "target",
    "tax", "test", "text", "ticket", "time", "timeout", "tip", "title", "top", "touch", "tour", "trace", "track",
    "trade", "train", "transfer", "transport", "trap", "travel", "treat", "trigger", "trust", "turn", "type", "update",
    "upgrade", "upload", "use", "value", "view", "visit", "voice", "void", "vote", "wait", "walk", "warrant", "wash",
    "watch", "wire", "witness", "work", "wrap", "yield",
];

/// Verbs that name a thing when they stand in a name: `OrderItem` orders nothing, and `PayInvoice` is about an invoice.
#[rustfmt::skip]
pub(super) const THINGS: &[&str] = &[
    "address", "bill", "bite", "book", "code", "contact", "contract", "credit", "date", "drink", "email", "feed",
    "file", "fund", "group", "host", "index", "invoice", "label", "lead", "license", "light", "list", "loan", "log",
    "mail", "map", "message", "name", "note", "number", "order", "package", "phone", "plan", "pool", "post", "price",
    "profile", "program", "project", "query", "queue", "rate", "record", "ring", "route", "rule", "sample", "score",
    "seat", "seed", "service", "shop", "sound", "source", "speed", "spring", "staff", "stage", "stand", "state",
    "stick", "sting", "stock", "store", "stream", "style", "survey", "target", "tax", "text", "ticket", "time",
    "title", "top", "train", "type", "value", "voice", "yield",
];

/// What may follow a verb and belong to it, as in `LogIn`.
#[rustfmt::skip]
pub(super) const PARTICLES: &[&str] = &["back", "down", "in", "off", "on", "out", "over", "up"];

/// Nouns that say how something ended: in `RequestApproval` nobody requests.
#[rustfmt::skip]
pub(super) const OUTCOMES: &[&str] = &[
    "acceptance", "approval", "cancelation", "cancellation", "completion", "denial", "expiration", "expiry", "failure",
    "rejection", "success", "timeout",
];

/// Verbs that are nouns too and that ask for something when a name begins with them.
#[rustfmt::skip]
pub(super) const REQUESTS: &[&str] = &["attempt", "process", "request"];

/// Things that nobody orders, invoices or prices when a noun of a deed follows: `OrderCancellation` is no command.
#[rustfmt::skip]
pub(super) const OWNERS: &[&str] = &[
    "contract", "invoice", "order", "price", "profile", "program", "project", "seat", "service", "shop", "stock",
    "tax", "ticket", "title", "value",
];

/// Nouns about a thing, as in `OrderStatus`.
#[rustfmt::skip]
pub(super) const ATTRIBUTES: &[&str] = &["change", "detail", "details", "history", "list", "number", "state", "status", "summary"];

/// Pasts whose base is no verb of a name.
#[rustfmt::skip]
pub(super) const RARE_PASTS: &[&str] = &["burnt", "dreamt", "leapt", "learnt", "spelt", "spilt", "spoilt", "strung"];

/// Two words that are one noun, although the second is a past.
#[rustfmt::skip]
pub(super) const COMPOUNDS: &[[&str; 2]] = &[
    ["back", "ground"], ["bid", "spread"], ["change", "set"], ["color", "preset"], ["consumer", "offset"],
    ["data", "set"], ["demand", "forecast"], ["dry", "run"], ["heart", "beat"], ["hotel", "sunbed"], ["job", "run"],
    ["market", "spread"], ["parity", "bit"], ["play", "ground"], ["record", "set"], ["result", "set"],
    ["sales", "forecast"], ["screen", "shot"], ["sub", "set"], ["test", "run"], ["text", "input"],
    ["topic", "offset"], ["user", "input"], ["weather", "forecast"],
];

/// How something ended. What follows may be the reason: `TransferFailedInsufficientFunds`.
#[rustfmt::skip]
pub(super) const ENDS: &[&str] = &[
    "aborted", "blocked", "canceled", "cancelled", "completed", "declined", "denied", "failed", "refused",
    "rejected", "skipped", "stopped", "succeeded", "terminated",
];

/// Words that begin a reason, and stand before no thing that somebody does something to.
#[rustfmt::skip]
pub(super) const REASONS: &[&str] = &[
    "bad", "conflicting", "corrupt", "duplicate", "empty", "exceeded", "five", "four", "fraud", "illegal", "incomplete",
    "incompatible", "incorrect", "insufficient", "invalid", "limit", "low", "malformed", "mismatched", "missing",
    "no", "one", "outage", "overflow", "overlimit", "several", "suspected", "three", "timeout", "too", "two",
    "unauthorized", "unavailable", "unknown", "unreachable", "unsupported", "wrong",
];

/// What makes a past a condition or a state that is wanted: `DeleteIfExpired`, `MarkAsRead`.
#[rustfmt::skip]
pub(super) const CONDITIONS: &[&str] = &["as", "if", "once", "unless", "until", "when", "while"];
