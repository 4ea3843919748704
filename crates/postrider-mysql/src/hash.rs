//! Which lane a key belongs to.

/// The lane hash of a key: the CRC-32 of its bytes, which `crc32()` computes in the database. No version and no platform
/// changes it; a test holds the two together.
pub fn hash_of(key: &str) -> i64 {
    let crc =
        key.bytes().fold(u32::MAX, |crc, byte| TABLE[usize::from(byte ^ crc.to_le_bytes()[0])] ^ (crc >> 8));
    i64::from(!crc)
}

/// The lane of a key.
pub(crate) fn lane_of(key: &str, lanes: u32) -> u32 {
    if lanes <= 1 {
        return 0;
    }
    u32::try_from(hash_of(key) % i64::from(lanes)).unwrap_or(0)
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place = 0;
    while place < 256 {
        let mut crc = place as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[place] = crc;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_never_changes() {
        assert_eq!(hash_of(""), 0);
        assert_eq!(hash_of("123456789"), 0xCBF4_3926);
        assert_eq!(hash_of("Order:1"), 713_933_541);
        assert_eq!(hash_of("😀"), 88_978_756);
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
