//! One record written in Kafka's own protocol: with what no client would write.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A record with these headers and this time (milliseconds since 1970), in partition 0 of a topic.
pub(crate) fn write(port: u16, topic: &str, key: &str, value: &str, headers: &[(&[u8], &[u8])], millis: i64) {
    let mut record = vec![0, 0, 0];
    for bytes in [key.as_bytes(), value.as_bytes()] {
        varint(&mut record, bytes.len());
        record.extend(bytes);
    }
    varint(&mut record, headers.len());
    for bytes in headers.iter().flat_map(|(name, value)| [name, value]) {
        varint(&mut record, bytes.len());
        record.extend(*bytes);
    }
    // No attributes, one record, its time twice, no producer's id, epoch and number.
    let mut batch =
        [&[0; 6][..], &millis.to_be_bytes(), &millis.to_be_bytes(), &[255; 14], &[0, 0, 0, 1]].concat();
    varint(&mut batch, record.len());
    batch.extend(record);
    // No epoch of a leader, the second kind of format.
    let rest = [&[255, 255, 255, 255, 2], &checksum(&batch).to_be_bytes()[..], &batch].concat();
    let batch = [&[0; 8], &size(rest.len())[..], &rest].concat();
    let (topic_size, name) = ((topic.len() as u16).to_be_bytes(), topic.as_bytes());
    // Produce in version 3, without names of a client and a transaction, for all replicas, within 30 seconds; one topic, one partition.
    let request = [
        &[0, 0, 0, 3, 0, 0, 0, 7, 255, 255, 255, 255, 255, 255, 0, 0, 117, 48, 0, 0, 0, 1][..],
        &topic_size,
        name,
        &[0, 0, 0, 1, 0, 0, 0, 0],
        &size(batch.len()),
        &batch,
    ]
    .concat();
    let mut broker = TcpStream::connect(("127.0.0.1", port)).expect("a broker");
    broker.write_all(&[&size(request.len())[..], &request].concat()).expect("written");
    let mut length = [0; 4];
    broker.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    broker.read_exact(&mut answer).expect("an answer");
    // The request's number, one topic with its name, one partition with its number.
    let at = 4 + 4 + 2 + topic.len() + 4 + 4;
    assert_eq!(answer[at..at + 2], [0, 0], "the broker took it");
}

fn size(length: usize) -> [u8; 4] {
    (length as u32).to_be_bytes()
}

/// A number as records have them: by seven bits, the lowest first, with the sign in the lowest.
fn varint(bytes: &mut Vec<u8>, number: usize) {
    let mut rest = number << 1;
    while rest > 127 {
        bytes.push(rest as u8 | 128);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// CRC-32C.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 * (sum & 1)))
    })
}
