//! Which lane a key belongs to.

const FACTOR: u64 = 16_777_619;
const MODULUS: u64 = 2_147_483_647;

/// The lane of a key: a polynomial over its characters modulo 2^31 - 1, shared out among the lanes.
pub(crate) fn lane_of(key: &str, lanes: usize) -> usize {
    if lanes <= 1 {
        return 0;
    }
    let hash =
        key.chars().fold(0, |hash, character| (hash * FACTOR + u64::from(u32::from(character))) % MODULUS);
    usize::try_from(hash).unwrap_or(0) % lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shared_out_evenly() {
        let mut shares = [0_u32; 7];
        for n in 0..7_000 {
            shares[lane_of(&format!("Order:{n}"), 7)] += 1;
        }
        assert!(shares.iter().all(|share| (850..1_150).contains(share)), "{shares:?}");
    }
}
