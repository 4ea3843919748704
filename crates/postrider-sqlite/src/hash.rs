//! Which lane a key belongs to.

const FACTOR: i64 = 16_777_619;
const MODULUS: i64 = 2_147_483_647;

/// The lane hash of a key: a polynomial over its characters modulo 2^31 - 1, which no version and no platform
/// changes. The view in `0003_retention.sql` computes the same; a test holds them together.
pub fn hash_of(key: &str) -> i64 {
    key.chars().fold(0, |value, character| (value * FACTOR + i64::from(u32::from(character))) % MODULUS)
}

/// The lane of a key.
pub(crate) fn lane_of(key: &str, lanes: u32) -> u32 {
    if lanes <= 1 {
        return 0;
    }
    u32::try_from(hash_of(key) % i64::from(lanes)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_never_changes() {
        assert_eq!(hash_of(""), 0);
        assert_eq!(hash_of("a"), 97);
        assert_eq!(hash_of("ab"), 97 * 16_777_619 + 98);
        assert_eq!(hash_of("Order:1"), 902_699_552);
        assert_eq!(hash_of("😀"), 0x1F600);
    }

    #[test]
    fn keys_are_shared_out_evenly() {
        let mut shares = [0_u32; 7];
        for n in 0..7_000 {
            shares[lane_of(&format!("Order:{n}"), 7) as usize] += 1;
        }
        assert!(shares.iter().all(|share| (850..1_150).contains(share)), "{shares:?}");
    }
}
