//! The files in /dev/shm mapped by this process, for `shared_memory_files` of `describe()`: perflab removes
//! them if a process was killed.

use crate::json_text;

/// Names below /dev/shm, sorted, without duplicates.
pub fn mapped_shared_memory() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut names: Vec<String> = maps
        .lines()
        .filter_map(|line| Some(line.split_once("/dev/shm/")?.1.trim_end_matches(" (deleted)").to_owned()))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A JSON list.
pub fn json_list<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let texts: Vec<String> = texts.into_iter().map(|text| json_text(text)).collect();
    format!("[{}]", texts.join(","))
}
