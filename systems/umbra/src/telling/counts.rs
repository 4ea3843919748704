//! What is counted at the end.

use story::Story;

use super::stage::{Stage, settings};
use crate::notification::TOLD;

pub(super) async fn everything(story: &mut Story, stage: &Stage) {
    story.part("Counted");
    let events = stage.eye.number("select count(*) from events.event").await;
    for line in stage
        .eye
        .texts(
            "select event_type || ': ' || count(*) from events.event group by event_type order by event_type",
        )
        .await
    {
        story.figure("events", line);
    }
    let trail = stage.eye.number("select count(*) from audit.events").await;
    story.equal("Audit rows = events", trail, events);
    let published =
        stage.eye.number("select count(*) from events.outbox where published_at is not null").await;
    story.equal("Published rows of events.outbox", published, events);
    let list = TOLD.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let told = format!("select count(*) from events.event where event_type in ({list})");
    let told = stage.eye.number(&told).await;
    story.equal(
        "Messages kept = events to tell of",
        stage.eye.number("select count(*) from notification.messages").await,
        told,
    );
    let sent = i64::try_from(stage.messages().await.messages.len()).unwrap_or_default();
    story.equal("Messages at Discord", sent, told);
    let charges = stage.charges().await;
    let paid = "select count(*) from billing.payment_attempts where result = 'succeeded'";
    let paid = u64::try_from(stage.eye.number(paid).await).unwrap_or_default();
    story.equal("Charges at Toss that were kept = payments", charges.charges - charges.refunds, paid);
    story.figure("won taken", charges.won);
    let refused = stage.eye.execute("update events.event set payload = '{}'").await;
    let refused = refused.err().unwrap_or_default();
    story.holds("A recorded payload can't be changed", !refused.is_empty(), &refused);
    addresses(story, stage);
}

fn addresses(story: &mut Story, stage: &Stage) {
    for (what, address) in [
        ("api", &stage.api),
        ("bot", &stage.bot),
        ("stub of Toss", &stage.toss),
        ("stub of Discord", &stage.discord),
    ] {
        story.address(what, address.clone());
    }
    story.address("worker", format!("{}/metrics", stage.worker));
    let url = stage.url();
    let postrider = story::process::postrider_path();
    let postrider = postrider.display();
    let command = match stage.is_postgres() {
        true => {
            let (settings, operators) = (settings(), stage.operators.url());
            format!(
                "DATABASE_URL={url} ALERT_URL={operators} {postrider} status --config {}",
                settings.display()
            )
        }
        false => format!("{postrider} status --store {url}"),
    };
    story.address("look at it", command);
}
