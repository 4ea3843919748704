//! Who may write to a topic, on a broker that asks.
//!
//! A broker made with [`Options::acls`](super::Options::acls) allows everything on what no rule is about.

use std::io;

use super::topics::unanswered;
use super::wire::{self, Answer, Api, Request};
use crate::task_error::TaskError;

/// Everybody, also who did not say a name.
const EVERYBODY: &str = "User:*";
const ANY_HOST: &str = "*";

const TOPIC: i8 = 2;
const LITERAL: i8 = 3;

const ALL: i8 = 2;
const WRITE: i8 = 4;

const ANY: i8 = 1;
const DENY: i8 = 2;
const ALLOW: i8 = 3;

/// Has the broker on `port` refuse whatever is written to `topic`; all else stays allowed.
pub fn forbid_writes(port: u16, topic: &str) -> Result<(), TaskError> {
    let mut request = Request::default();
    // A topic with any rule is closed but for what a rule allows.
    request.list(&[(ALL, ALLOW), (WRITE, DENY)], |list, (operation, permission)| {
        list.int8(TOPIC).text(topic).int8(LITERAL);
        list.text(EVERYBODY).text(ANY_HOST).int8(*operation).int8(*permission)
    });
    settled(port, Api::CreateAcls, &request, "forbid", topic)
}

/// Takes [`forbid_writes`] back.
pub fn permit_writes(port: u16, topic: &str) -> Result<(), TaskError> {
    let mut request = Request::default();
    request.list(&[()], |list, ()| {
        list.int8(TOPIC).text(topic).int8(LITERAL);
        list.text(EVERYBODY).text(ANY_HOST).int8(ANY).int8(ANY)
    });
    settled(port, Api::DeleteAcls, &request, "permit", topic)
}

fn settled(port: u16, api: Api, request: &Request, verb: &str, topic: &str) -> Result<(), TaskError> {
    let result = wire::call(port, api, request).and_then(|mut answer| first_error(&mut answer));
    match result.map_err(|error| unanswered(&format!("{verb} writing to {topic}"), &error))? {
        None => Ok(()),
        Some(reason) => Err(TaskError::new(format!("Kafka did not {verb} writing to {topic}: {reason}"))),
    }
}

/// The error of the first rule; the others share its fate.
fn first_error(answer: &mut Answer) -> io::Result<Option<String>> {
    // How long the client shall hold back, and how many results there are.
    answer.int32()?;
    answer.int32()?;
    let error = answer.int16()?;
    let reason = answer.text()?.unwrap_or_default();
    Ok((error != 0).then(|| format!("{reason} (error {error})")))
}
