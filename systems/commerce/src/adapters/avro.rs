//! The same events with payloads in Avro's binary encoding: what a change of format costs.
//!
//! Every field of the five records is a `long`, and an Avro record is its fields one after another, so this is all of the encoding
//! that is needed here.

use postrider::{NewEvent, Payload};

use crate::adapters::mapping;
use crate::domain::DomainEvent;

/// The content type of such a payload.
pub const CONTENT_TYPE: &str = "avro/binary";

/// The event of a fact, with a payload in Avro.
pub fn avro(fact: &DomainEvent) -> postrider::Result<NewEvent> {
    let fields = match fact {
        DomainEvent::OrderPaid(fact) => vec![fact.order_id, fact.payment_id, fact.amount],
        DomainEvent::LikeCreated(fact) => vec![fact.user_id, fact.product_id],
        DomainEvent::LikeCanceled(fact) => vec![fact.user_id, fact.product_id],
        DomainEvent::ProductViewed(fact) => vec![fact.product_id, fact.user_id],
        DomainEvent::StockDepleted(fact) => vec![fact.product_id],
    };
    let mut bytes = Vec::new();
    fields.into_iter().for_each(|field| long(field, &mut bytes));
    Ok(mapping::event(fact, Payload::Bytes { content_type: CONTENT_TYPE.into(), bytes }))
}

/// A `long`: zigzag, then seven bits a byte, the lowest first.
fn long(value: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest > 0x7f {
        bytes.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Avro's specification.
    #[test]
    fn a_long_is_written_as_the_specification_shows() {
        let written = |value| {
            let mut bytes = Vec::new();
            long(value, &mut bytes);
            bytes
        };
        for (value, bytes) in
            [(0, vec![0]), (-1, vec![1]), (1, vec![2]), (-64, vec![0x7f]), (64, vec![0x80, 1])]
        {
            assert_eq!(written(value), bytes, "{value}");
        }
    }
}
