//! Options of a plug-in, read with errors that name the option and say what would be right.

use crate::{Error, Result, Settings};

pub struct Options<'a> {
    plugin: &'static str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    /// Refuses unknown options, and options given twice.
    pub fn new(plugin: &'static str, settings: &Settings<'a>, known: &[&str]) -> Result<Options<'a>> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for &(key, value) in &settings.options {
            if !known.contains(&key) {
                let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Error::bad_option(format!("{plugin}: unknown option {key}; known are: {all}")));
            }
            if given.iter().any(|(other, _)| *other == key) {
                return Err(Error::bad_option(format!("{plugin}: option {key} is given twice")));
            }
            given.push((key, value));
        }
        Ok(Options { plugin, given })
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.given.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// `on` or `off`.
    pub fn switch(&self, key: &str, otherwise: bool) -> Result<bool> {
        match self.text(key) {
            None => Ok(otherwise),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(_) => Err(self.refusal(key, "on or off")),
        }
    }

    pub fn number(&self, key: &str, least: usize, most: usize, otherwise: usize) -> Result<usize> {
        let Some(text) = self.text(key) else { return Ok(otherwise) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.refusal(key, &format!("a whole number from {least} to {most}")))
    }

    /// `500us`, `2ms`, `1.5s`, `100ns`: a number without unit is refused, so that no unit is guessed.
    pub fn duration_ns(&self, key: &str, otherwise: i64) -> Result<i64> {
        let Some(text) = self.text(key) else { return Ok(otherwise) };
        let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let scale = match unit {
            "ns" => 1e0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => f64::NAN,
        };
        let value = number.parse::<f64>().map(|number| number * scale).ok();
        let value = value.filter(|ns| (0.0..9e18).contains(ns));
        value.map(|ns| ns as i64).ok_or_else(|| self.refusal(key, "a duration such as 500us"))
    }

    pub fn refusal(&self, key: &str, right: &str) -> Error {
        let value = self.text(key).unwrap_or("");
        Error::bad_option(format!("{}: option {key}={value}; right would be {right}", self.plugin))
    }
}

/// For plug-ins whose messages stay on this machine.
pub fn require_loopback(plugin: &str, settings: &Settings, reach: &str) -> Result<()> {
    if settings.network == "lo" {
        return Ok(());
    }
    Err(Error::unsupported(format!("{plugin}: network '{}'; it {reach}, right would be 'lo'", settings.network)))
}
