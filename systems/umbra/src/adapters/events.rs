//! The facts as events of Postrider, for what knows them by their types: the catalog.

use postrider::Event;
use postrider::catalog::Catalog;

use crate::contracts::*;

macro_rules! events {
    ($($fact:ident)+) => {
        $(impl Event for $fact {
            const NAME: &'static str = <Self as Fact>::NAME;
            const STREAM: &'static str = <Self as Fact>::CONTEXT;
            const AGGREGATE: &'static str = <Self as Fact>::AGGREGATE;
            const SUMMARY: Option<&'static str> = Some(<Self as Fact>::SUMMARY);

            fn aggregate_id(&self) -> String {
                Fact::aggregate_id(self).to_string()
            }
        })+

        /// The events of Umbra, each published by its context. Who reads them says the relay.
        pub fn catalog() -> Catalog {
            Catalog::new("Umbra")$(.published_by(<$fact as Fact>::CONTEXT).event::<$fact>())+
        }
    };
}

events! {
    BotInstalled BotKicked GuildOwnerChanged GuildDeleted
    BillingKeyIssued BillingKeyDeleted SubscriptionStarted PaymentSucceeded PaymentFailed PaymentFailedFinal
    SubscriptionCanceled SubscriptionSuspended PlanUpgraded PlanDowngraded
    LicenseGranted LicenseExtended LicenseDowngraded LicenseSuspended LicenseCanceled
    SnapshotCreated SnapshotDeleted RestoreStarted RestoreCompleted RestoreFailed AntiNukeTriggered AntiNukeActioned
    MemberJoinedViaWebJoin MemberRestored
    UserRegistered UserSessionCreated
}
