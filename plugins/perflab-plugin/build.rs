//! Generates the Rust version of the C interface from perflab's own headers: middleware.h, and the QoS
//! compatibility rules in policies.h. So a change there also changes this, and no copy can be outdated.
//!
//! It parses only the C that the header uses, and fails naming the first word it does not understand.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let headers = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../native/middleware");
    let read = |name: &str| {
        let path = headers.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        fs::read_to_string(&path).unwrap_or_else(|why| panic!("{name}: {why}"))
    };
    let interface = Header::of(&read("middleware.h")).rust;
    let policies = rules(&read("policies.h"));
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    fs::write(out.join("interface.rs"), interface + &policies).unwrap();
}

struct Header {
    tokens: Vec<String>,
    at: usize,
    rust: String,
    fields: String,
}

impl Header {
    fn of(text: &str) -> Header {
        let mut header = Header { tokens: Vec::new(), at: 0, rust: String::new(), fields: String::new() };
        let code = without_comments(text);
        let mut plain = String::new();
        for line in code.lines() {
            match line.trim().strip_prefix('#') {
                Some(directive) => header.definition(directive),
                None => plain.push_str(line),
            }
            plain.push('\n');
        }
        header.tokens = tokens(&plain);
        while header.at < header.tokens.len() {
            header.declaration();
        }
        let fields = std::mem::take(&mut header.fields);
        write!(
            header.rust,
            "/// Every member of every struct, with its place, for the test against a C compiler.\n\
             pub const LAYOUT: &[(&str, &str, usize, usize)] = &[\n{fields}];\n"
        )
        .unwrap();
        header
    }

    /// `#define NAME value`, if the value is a known kind.
    fn definition(&mut self, directive: &str) {
        let words: Vec<&str> = directive.split_whitespace().collect();
        let ["define", name, value] = words[..] else { return };
        let (kind, value) = match value {
            "INT64_MIN" | "INT64_MAX" => ("i64", format!("i64::{}", &value[6..])),
            "INT32_MAX" => ("i32", "i32::MAX".to_owned()),
            text if text.starts_with('"') => ("&str", text.to_owned()),
            number => ("u32", number.trim_end_matches('u').to_owned()),
        };
        writeln!(self.rust, "pub const {name}: {kind} = {value};").unwrap();
    }

    fn declaration(&mut self) {
        if self.taken("extern") {
            self.expect("\"C\"");
            self.expect("{");
            return;
        }
        if self.taken("}") {
            return;
        }
        self.expect("typedef");
        match self.peek() {
            "enum" => self.enumeration(),
            "struct" => self.structure(),
            _ => {
                let (name, kind) = self.member();
                self.expect(";");
                writeln!(self.rust, "pub type {name} = {kind};").unwrap();
            }
        }
    }

    fn enumeration(&mut self) {
        self.expect("enum");
        let name = self.next();
        self.expect("{");
        writeln!(self.rust, "pub type {name} = core::ffi::c_int;").unwrap();
        let mut value = 0;
        while !self.taken("}") {
            let word = self.next();
            if self.taken("=") {
                let sign = if self.taken("-") { -1 } else { 1 };
                let text = self.next();
                value = sign * text.parse::<i32>().unwrap_or_else(|_| panic!("middleware.h: {word} = {text}"));
            }
            writeln!(self.rust, "pub const {word}: {name} = {value};").unwrap();
            value += 1;
            self.taken(",");
        }
        self.next();
        self.expect(";");
    }

    fn structure(&mut self) {
        self.expect("struct");
        let name = self.next();
        if !self.taken("{") {
            self.next();
            self.expect(";");
            writeln!(self.rust, "#[repr(C)]\npub struct {name} {{\n    _private: [u8; 0],\n}}").unwrap();
            return;
        }
        writeln!(self.rust, "#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {name} {{").unwrap();
        while !self.taken("}") {
            let (member, kind) = self.member();
            self.expect(";");
            writeln!(self.rust, "    pub {}: {kind},", escaped(&member)).unwrap();
            writeln!(
                self.fields,
                "    (\"{name}\", \"{member}\", core::mem::offset_of!({name}, {}), core::mem::size_of::<{name}>()),",
                escaped(&member)
            )
            .unwrap();
        }
        self.rust.push_str("}\n");
        self.next();
        self.expect(";");
    }

    /// A name and its type: `const char* text`, `uint8_t bytes[16]`, `int (*call)(void* context)`.
    fn member(&mut self) -> (String, String) {
        let kind = self.kind();
        if self.taken("(") {
            self.expect("*");
            let name = self.next();
            self.expect(")");
            self.expect("(");
            let mut given = Vec::new();
            while !self.taken(")") {
                if self.peek() == "void" && self.tokens[self.at + 1] == ")" {
                    self.next();
                    continue;
                }
                given.push(self.member().1);
                self.taken(",");
            }
            let back = if kind == "()" { String::new() } else { format!(" -> {kind}") };
            return (name, format!("Option<unsafe extern \"C\" fn({}){back}>", given.join(", ")));
        }
        let name = self.next();
        if self.taken("[") {
            let count = self.next();
            self.expect("]");
            // As a parameter it is an address.
            return match self.peek() {
                "," | ")" => (name, format!("*mut {kind}")),
                _ => (name, format!("[{kind}; {count}]")),
            };
        }
        (name, kind)
    }

    fn kind(&mut self) -> String {
        let constant = self.taken("const");
        let word = self.next();
        let mut kind = match word.as_str() {
            "bool" => "bool",
            "char" => "core::ffi::c_char",
            "void" => "()",
            "size_t" => "usize",
            "uint8_t" => "u8",
            "int32_t" => "i32",
            "uint32_t" => "u32",
            "int64_t" => "i64",
            "uint64_t" => "u64",
            own if own.starts_with("perflab_") => own,
            other => panic!("middleware.h: {other} is not a type of the plug-in interface"),
        }
        .to_owned();
        let mut reads = constant;
        while self.taken("*") {
            let to = if kind == "()" { "core::ffi::c_void" } else { &kind };
            kind = format!("*{} {to}", if reads { "const" } else { "mut" });
            reads = false;
        }
        kind
    }

    fn peek(&self) -> &str {
        &self.tokens[self.at]
    }
    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens[self.at - 1].clone()
    }
    fn taken(&mut self, token: &str) -> bool {
        let is = self.tokens[self.at] == token;
        self.at += usize::from(is);
        is
    }
    fn expect(&mut self, token: &str) {
        let found = self.next();
        assert!(found == token, "middleware.h: {found:?} where {token:?} should be");
    }
}

fn escaped(name: &str) -> &str {
    if name == "type" {
        "r#type"
    } else {
        name
    }
}

fn without_comments(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("/*") {
        plain.push_str(&rest[..begin]);
        let end = rest[begin..].find("*/").expect("middleware.h: a comment without an end");
        rest = &rest[begin + end + 2..];
    }
    plain + rest
}

fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut joins = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || c == '_' || c == '"';
        if is_word && joins {
            found.last_mut().unwrap().push(c);
        } else if !c.is_whitespace() {
            found.push(c.to_string());
        }
        joins = is_word;
    }
    found
}

/// Generates the compatibility check from the rows of policies.h.
fn rules(text: &str) -> String {
    let mut rust = String::from(
        "/// The first policy that keeps a writer and a reader from matching (DDS 1.4, 2.2.3).\n\
         pub fn incompatible_policy(offered: &perflab_qos, requested: &perflab_qos) -> Option<&'static core::ffi::CStr> {\n",
    );
    let rows = text.split("row(\"").skip(1);
    for row in rows {
        let end = row.find(')').expect("policies.h: a row with an end");
        let words: Vec<&str> = row[..end].split(',').map(str::trim).collect();
        let [_, _, policy, member, .., rule, _, _] = words[..] else { panic!("policies.h: {row:?}") };
        let member = member.strip_prefix("&Qos::").expect("policies.h: a member of perflab_qos");
        let policy = policy.trim_matches('"');
        let fits = match rule {
            "kAny" => continue,
            "rule::AtLeast{}" => format!("offered.{member} >= requested.{member}"),
            "rule::AtMost{}" => format!("offered.{member} <= requested.{member}"),
            "rule::Same{}" => format!("offered.{member} == requested.{member}"),
            "rule::OneInCommon{}" => format!("one_in_common(&offered.{member}, &requested.{member})"),
            other => panic!("policies.h: {other} is an unknown rule"),
        };
        writeln!(rust, "    if !({fits}) {{\n        return Some(c\"{policy}\");\n    }}").unwrap();
    }
    rust + "    None\n}\n"
}
