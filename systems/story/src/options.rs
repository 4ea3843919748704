//! What somebody asked of a story.

/// The arguments of `NAME story`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `--keep`: everything stays up at the end, until Ctrl-C.
    pub keep: bool,
    /// `--store sqlite`: no server at all.
    pub sqlite: bool,
    /// The long form, as `cargo xtask soak` runs it.
    pub long: bool,
}

impl Options {
    /// Reads them. An unknown one is refused with a sentence.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { long: std::env::var_os("POSTRIDER_SOAK").is_some(), ..Self::default() };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--keep" => options.keep = true,
                "--long" => options.long = true,
                "--store" => match arguments.next().as_deref() {
                    Some("sqlite") => options.sqlite = true,
                    Some("server") => options.sqlite = false,
                    _ => return Err("--store must be followed by sqlite or server".to_owned()),
                },
                other => {
                    return Err(format!(
                        "{other} is unknown; the options are --keep, --long and --store sqlite"
                    ));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = parse("--keep --store sqlite").expect("options");
        assert!(options.keep && options.sqlite);
        assert!(parse("--store").expect_err("no value").contains("sqlite"));
        assert!(parse("--kep").expect_err("unknown").contains("--kep is unknown"));
    }
}
