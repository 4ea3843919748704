//! A store around another one: what it does not do itself it passes on.

/// Passes what people see, what they do and what relays tell each other on to the store in `self.store`. A wrapper then implements
/// [`EventLog`](postrider_core::EventLog) alone.
#[macro_export]
macro_rules! pass_on {
    ($wrapper:ty) => {
        #[$crate::async_trait::async_trait]
        impl $crate::postrider_core::Inspect for $wrapper {
            async fn subscriptions(
                &self,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::SubscriptionInfo>> {
                self.store.subscriptions().await
            }

            async fn relays(&self) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::RelayInfo>> {
                self.store.relays().await
            }

            async fn states(
                &self,
                query: &$crate::postrider_core::StateQuery,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::EventState>> {
                self.store.states(query).await
            }

            async fn figures(
                &self,
                subscription: &str,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::Figures>> {
                self.store.figures(subscription).await
            }

            async fn figures_up_to(
                &self,
                subscription: &str,
                most: u32,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::Figures>> {
                self.store.figures_up_to(subscription, most).await
            }

            async fn undelivered_over(
                &self,
                subscription: &str,
                age: ::std::time::Duration,
            ) -> $crate::postrider_core::Result<u64> {
                self.store.undelivered_over(subscription, age).await
            }

            async fn unread_since(
                &self,
                subscription: &str,
            ) -> $crate::postrider_core::Result<Option<$crate::postrider_core::OffsetDateTime>> {
                self.store.unread_since(subscription).await
            }

            async fn events(
                &self,
                query: &$crate::postrider_core::EventQuery,
            ) -> $crate::postrider_core::Result<$crate::postrider_core::EventPage> {
                self.store.events(query).await
            }

            async fn open_deliveries(
                &self,
                query: &$crate::postrider_core::OpenDeliveryQuery,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::OpenDelivery>> {
                self.store.open_deliveries(query).await
            }

            async fn attempts(
                &self,
                event: $crate::postrider_core::EventRef,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::PastAttempts>> {
                self.store.attempts(event).await
            }

            async fn audits(
                &self,
                limit: u32,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::Audit>> {
                self.store.audits(limit).await
            }

            async fn sweepable(
                &self,
                sweep: &$crate::postrider_core::Sweep,
            ) -> $crate::postrider_core::Result<$crate::postrider_core::Sweepable> {
                self.store.sweepable(sweep).await
            }

            async fn check_archive(
                &self,
                archiving: &$crate::postrider_core::ArchiveOptions,
            ) -> $crate::postrider_core::Result<()> {
                self.store.check_archive(archiving).await
            }

            async fn checks(
                &self,
                now: $crate::postrider_core::OffsetDateTime,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::Check>> {
                self.store.checks(now).await
            }
        }

        #[$crate::async_trait::async_trait]
        impl $crate::postrider_core::Operate for $wrapper {
            async fn pause(
                &self,
                subscription: &str,
                pause: Option<&$crate::postrider_core::Pause>,
            ) -> $crate::postrider_core::Result<()> {
                self.store.pause(subscription, pause).await
            }

            async fn relane(
                &self,
                subscription: &str,
                lanes: u32,
            ) -> $crate::postrider_core::Result<$crate::postrider_core::Relane> {
                self.store.relane(subscription, lanes).await
            }

            async fn remove(&self, subscription: &str, force: bool) -> $crate::postrider_core::Result<()> {
                self.store.remove(subscription, force).await
            }

            async fn replay(
                &self,
                replay: &$crate::postrider_core::Replay,
            ) -> $crate::postrider_core::Result<$crate::postrider_core::Replayed> {
                self.store.replay(replay).await
            }

            async fn resolve_dead(
                &self,
                action: &$crate::postrider_core::ResolveDead,
            ) -> $crate::postrider_core::Result<u64> {
                self.store.resolve_dead(action).await
            }

            async fn replace_dead(
                &self,
                replacement: &$crate::postrider_core::ReplaceDead,
            ) -> $crate::postrider_core::Result<Vec<String>> {
                self.store.replace_dead(replacement).await
            }

            async fn sweep(
                &self,
                sweep: &$crate::postrider_core::Sweep,
            ) -> $crate::postrider_core::Result<$crate::postrider_core::Swept> {
                self.store.sweep(sweep).await
            }

            async fn audit(
                &self,
                entry: &$crate::postrider_core::AuditEntry,
            ) -> $crate::postrider_core::Result<()> {
                self.store.audit(entry).await
            }
        }

        #[$crate::async_trait::async_trait]
        impl $crate::postrider_core::Coordinate for $wrapper {
            async fn heartbeat(
                &self,
                relay: &$crate::postrider_core::RelayReport,
            ) -> $crate::postrider_core::Result<Vec<$crate::postrider_core::RelayInfo>> {
                self.store.heartbeat(relay).await
            }

            async fn deregister(
                &self,
                relay: $crate::postrider_core::Uuid,
            ) -> $crate::postrider_core::Result<()> {
                self.store.deregister(relay).await
            }

            async fn acquire_leader_lease(
                &self,
                task: &str,
                owner: &str,
                lease: ::std::time::Duration,
            ) -> $crate::postrider_core::Result<Option<$crate::postrider_core::LeaderLease>> {
                self.store.acquire_leader_lease(task, owner, lease).await
            }

            async fn save_leader_note(
                &self,
                task: &str,
                owner: &str,
                note: &str,
            ) -> $crate::postrider_core::Result<bool> {
                self.store.save_leader_note(task, owner, note).await
            }

            async fn release_leader_lease(
                &self,
                task: &str,
                owner: &str,
            ) -> $crate::postrider_core::Result<()> {
                self.store.release_leader_lease(task, owner).await
            }
        }
    };
}
