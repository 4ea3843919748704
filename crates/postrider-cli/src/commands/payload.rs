//! A payload as it is named on the command line: the text itself, a file, or standard input.

use std::io::Read;

use postrider::{Error, ErrorKind};

use crate::Failure;
use crate::config::Problem;
use crate::config::secret::plain;
use crate::output;

/// More is not read into memory, whatever the limit.
const MOST: u64 = 64 << 20;

/// The bytes that `@FILE`, `-` or the text itself stand for.
pub(crate) fn bytes(named: &str) -> Result<Vec<u8>, Problem> {
    let read = |source: &mut dyn Read| {
        let mut bytes = Vec::new();
        source.take(MOST + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let (bytes, of) = match named.strip_prefix('@') {
        Some(path) => {
            let read = std::fs::File::open(path).and_then(|mut file| read(&mut file));
            (read, format!("the file {path}"))
        }
        None if named == "-" => (read(&mut std::io::stdin()), "standard input".to_owned()),
        None => (Ok(named.to_owned().into_bytes()), "the payload".to_owned()),
    };
    let bytes = bytes.map_err(|error| Problem::new(format!("can't read {of}: {}", plain(&error))))?;
    if bytes.len() as u64 > MOST {
        return Err(Problem::new(format!("{of} must not be larger than {} bytes", output::number(MOST))));
    }
    Ok(bytes)
}

/// What can't be recorded was not said well.
pub(crate) fn wrong(error: &Error) -> Problem {
    Problem::new(error.message())
}

/// The same of a failure, if it is one of these.
pub(crate) fn explained(failure: Failure) -> Failure {
    match failure.downcast_ref::<Error>() {
        Some(error) if error.kind() == ErrorKind::Invalid => wrong(error).into(),
        _ => failure,
    }
}

/// A header as it is named on the command line.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, as in tenant=acme".to_owned()),
    }
}
