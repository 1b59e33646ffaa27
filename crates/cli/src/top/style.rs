//! What the terminal can show.

/// The characters that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Characters of Unicode.
    Unicode,
    /// Only ASCII.
    Ascii,
}

impl Style {
    /// Returns the style for the character set of the environment's locale (locale(7)).
    pub fn of_locale() -> Self {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let name = set.into_iter().next().unwrap_or_default().to_lowercase();
        if name.contains("utf-8") || name.contains("utf8") { Self::Unicode } else { Self::Ascii }
    }

    /// Heights of a bar, from nothing to the full line.
    pub(super) const fn bars(self) -> [char; 8] {
        match self {
            Self::Unicode => [' ', '▁', '▂', '▃', '▄', '▅', '▆', '█'],
            Self::Ascii => [' ', '.', ':', '-', '=', '+', '*', '#'],
        }
    }
}
