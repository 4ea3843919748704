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
    /// `--break loss`: an effect is removed before it is counted. The story must say so, and its exit code must be 1.
    pub loss: bool,
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
                "--break" => match arguments.next().as_deref() {
                    Some("loss") => options.loss = true,
                    _ => return Err("--break must be followed by loss".to_owned()),
                },
                "--store" => match arguments.next().as_deref() {
                    Some("sqlite") => options.sqlite = true,
                    Some("server") => options.sqlite = false,
                    _ => return Err("--store must be followed by sqlite or server".to_owned()),
                },
                other => {
                    return Err(format!(
                        "{other} is unknown; the options are --keep, --long, --break loss and --store sqlite"
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
        assert!(options.keep && options.sqlite && !options.loss);
        assert!(parse("--break loss").expect("options").loss);
        assert!(parse("--break order").expect_err("no such loss").contains("--break must"));
        assert!(parse("--store").expect_err("no value").contains("sqlite"));
        assert!(parse("--kep").expect_err("unknown").contains("--kep is unknown"));
    }
}
