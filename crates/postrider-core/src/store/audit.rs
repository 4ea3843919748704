//! The audit: who did what, and why.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind, Limits, Result};

/// A change that an operator made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// Who.
    pub who: String,
    /// What: the verb, such as `requeue`, and its result.
    pub what: String,
    /// Why.
    pub why: Option<String>,
    /// The subscription that it changed.
    pub subscription: Option<String>,
    /// The event that it changed.
    pub event_id: Option<Uuid>,
}

impl AuditEntry {
    /// The longest reason, in bytes.
    pub const WHY: usize = 2000;

    /// Checks that a store can keep it.
    pub fn check(&self) -> Result<()> {
        let parts = [
            ("who", Some(&self.who), Limits::NAME),
            ("what", Some(&self.what), Limits::KEY),
            ("why", self.why.as_ref(), Self::WHY),
            ("subscription", self.subscription.as_ref(), Limits::NAME),
        ];
        for (name, text, most) in parts {
            let Some(text) = text else { continue };
            if text.is_empty() || text.len() > most || text.contains('\0') {
                let message =
                    format!("the {name} of an audit entry must have 1 to {most} bytes and no NUL character");
                return Err(Error::new(ErrorKind::Invalid, "audit", message));
            }
        }
        Ok(())
    }
}

/// A change that an operator made, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Its number; later entries have higher ones.
    pub id: i64,
    /// When, by the store's clock.
    pub at: OffsetDateTime,
    /// What.
    pub entry: AuditEntry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_who_and_what() {
        let entry = AuditEntry { who: "ada".into(), what: "pause".into(), ..AuditEntry::default() };
        entry.check().expect("a good entry");
        for wrong in [
            AuditEntry { who: String::new(), ..entry.clone() },
            AuditEntry { what: "a\0b".into(), ..entry.clone() },
            AuditEntry { why: Some("x".repeat(AuditEntry::WHY + 1)), ..entry },
        ] {
            assert_eq!(wrong.check().expect_err("must be refused").kind(), ErrorKind::Invalid);
        }
    }
}
