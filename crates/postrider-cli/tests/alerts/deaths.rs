//! Events that die: each is told, and its incident ends with its death.

use crate::fixture::Fixture;
use crate::{SLACK, actions, documented, texts};
use postrider_testkit::until_true;

/// L8, T4: each event that dies is told with its id and its error, and without its payload; a flood in one message.
#[tokio::test(flavor = "multi_thread")]
async fn each_event_that_dies_is_told_with_its_id_and_its_error() {
    let fixture = Fixture::new().await;
    let alerts = "[[alert]]\nwhen = \"event dies\"\nto = [\"slack\", \"own\", \"pager\"]\n";
    fixture.settings(alerts);
    let ear = &fixture.ear;
    ear.always("/mail", Some(422));
    let mut relay = fixture.start("relay", &["relay"]);
    let ids = fixture.record(2).await;
    until_true("both are told", || ear.heard(SLACK).len() >= 2 && ear.heard("/own").len() >= 2).await;
    fixture.rounds(3).await;
    let (slack, own, pager) = (ear.heard(SLACK), ear.heard("/own"), ear.heard("/pager"));
    assert_eq!((slack.len(), own.len(), pager.len()), (2, 2, 2), "each once: {slack:?}");
    for (place, id) in ids.iter().enumerate() {
        let text = texts(&slack).into_iter().find(|text| text.contains(id)).expect("its id");
        assert!(text.contains("OrderPaid of Order") && text.contains("for mail after 1 attempt"), "{text}");
        assert!(text.contains("422"), "its error: {text}");
        assert!(text.ends_with(&format!("; next: postrider dead show {id}")), "{text}");
        assert!(text.contains(", at 20"), "when it died: {text}");
        let own = own.iter().find(|each| each.body["event_id"] == id.as_str()).expect("its id");
        assert_eq!(own.body["aggregate_id"], (place + 1).to_string());
        assert!(own.body["error_message"].as_str().is_some_and(|text| text.contains("422")), "{own:?}");
        assert!(
            actions(&pager).iter().any(|(action, incident)| action == "trigger" && incident.contains(id))
        );
    }
    for heard in [&slack, &own, &pager] {
        assert!(!format!("{heard:?}").contains("planted-payload"), "no payload: {heard:?}");
    }

    // One that died while nobody looked is told by the next who does.
    relay.end();
    fixture.settings("");
    let mut quiet = fixture.start("quiet", &["relay"]);
    let late = fixture.record(1).await;
    until_true("it was tried", || ear.heard("/mail").len() >= 3).await;
    quiet.end();
    let heard = ear.heard(SLACK).len();
    assert_eq!(heard, 2, "nobody looked");
    fixture.settings(alerts);
    let mut relay = fixture.start("again", &["relay"]);
    until_true("it is told", || ear.heard(SLACK).len() > heard).await;
    assert_eq!(texts(&ear.heard(SLACK)).iter().filter(|text| text.contains(&late[0])).count(), 1);

    let before = ear.heard(SLACK).len();
    fixture.record(60).await;
    until_true("the flood is told", || ear.heard(SLACK).len() > before).await;
    fixture.rounds(3).await;
    let flood = &texts(&ear.heard(SLACK))[before..];
    assert_eq!(flood.len(), 1, "{flood:?}");
    assert!(
        flood[0].contains("60 events died (60 for mail)") && flood[0].contains("postrider dead list"),
        "{flood:?}"
    );
    documented(&ear.heard("/own"));
    relay.end();
    fixture.end().await;
}

/// The incident of an event that died.
fn incident(told: &[(String, String)], id: &str) -> String {
    let (_, incident) = told.iter().find(|(_, incident)| incident.contains(id)).expect("its incident");
    incident.clone()
}

async fn succeeds(fixture: &Fixture, arguments: &[&str]) {
    let (code, said) = fixture.run(arguments).await;
    assert_eq!(code, Some(0), "{said}");
}

/// A flood is one incident, until the last of it is dealt with. `before` messages were heard before it, and `last` is the incident of
/// an event that died alone.
async fn a_flood_is_one_incident(fixture: &Fixture, before: usize, last: &str) {
    let ear = &fixture.ear;
    let resolved = || {
        let all = actions(&ear.heard("/pager"));
        all.into_iter().filter(|(action, _)| action == "resolve").map(|(_, of)| of).collect::<Vec<_>>()
    };
    ear.always("/mail", Some(422));
    fixture.record(40).await;
    until_true("the flood is told", || ear.heard("/pager").len() > before).await;
    fixture.rounds(2).await;
    let flood = ear.heard("/pager").len();
    assert!(actions(&ear.heard("/pager")[before..]).iter().all(|(action, _)| action == "trigger"));
    ear.always("/mail", None);
    succeeds(fixture, &["dead", "requeue", "--all", "--yes"]).await;
    let of_flood: Vec<String> =
        actions(&ear.heard("/pager")[before..flood]).into_iter().map(|(_, of)| of).collect();
    until_true("it is resolved", || of_flood.iter().all(|of| resolved().contains(of))).await;
    until_true("and so is the last", || resolved().iter().any(|of| of == last)).await;
}

/// L9, T4: who keeps incidents is told when an event is dead no longer, however that came to be, and by any relay.
#[tokio::test(flavor = "multi_thread")]
async fn the_incident_of_an_event_that_died_is_resolved_when_it_is_dead_no_longer() {
    let fixture = Fixture::new().await;
    fixture.settings("[[alert]]\nwhen = \"event dies\"\nto = [\"slack\", \"own\", \"pager\"]\n");
    let ear = &fixture.ear;
    ear.always("/mail", Some(422));
    let mut relay = fixture.start("relay", &["relay"]);
    let ids = fixture.record(3).await;
    until_true("all are told", || ear.heard("/pager").len() == 3 && ear.heard(SLACK).len() == 3).await;
    let told = actions(&ear.heard("/pager"));
    let incident = |id: &str| incident(&told, id);
    // One dies anew: its incident goes on, and is told again.
    succeeds(&fixture, &["dead", "requeue", &ids[0], "--yes"]).await;
    until_true("it is told anew", || ear.heard("/pager").len() >= 4).await;
    fixture.rounds(2).await;
    let again = actions(&ear.heard("/pager"));
    let of_it: Vec<_> = again.iter().filter(|(_, each)| *each == incident(&ids[0])).collect();
    assert_eq!(of_it.last().map(|(action, _)| action.as_str()), Some("trigger"), "it is dead: {again:?}");
    assert!(again.iter().all(|(action, of)| action == "trigger" || *of == incident(&ids[0])), "{again:?}");

    // One is delivered after all, one is discarded while nobody speaks, and one stays.
    relay.end();
    let before = ear.heard("/pager").len();
    succeeds(&fixture, &["dead", "discard", &ids[1], "--yes", "--why", "a test"]).await;
    ear.always("/mail", None);
    succeeds(&fixture, &["dead", "requeue", &ids[0], "--yes"]).await;
    let mut relay = fixture.start("next", &["relay"]);
    until_true("both are resolved", || {
        let told = actions(&ear.heard("/pager")[before..]);
        [0, 1].iter().all(|each| told.contains(&("resolve".to_owned(), incident(&ids[*each]))))
    })
    .await;
    fixture.rounds(3).await;
    let heard = ear.heard("/pager");
    let last = actions(&heard[before..]);
    assert_eq!(last.len(), 2, "each once, and not the one that is dead: {last:?}");
    let summary = heard[heard.len() - 1].body["payload"]["summary"].as_str().expect("a sentence");
    assert!(
        summary.starts_with("an event is no longer dead: ") && summary.ends_with(", for mail"),
        "{summary}"
    );
    assert!(
        ear.heard("/own").iter().all(|each| each.body["state"] == "firing"),
        "others hear of deaths only"
    );

    a_flood_is_one_incident(&fixture, heard.len(), &incident(&ids[2])).await;
    relay.end();
    fixture.end().await;
}
