// SPDX-License-Identifier: Apache-2.0
//! ffi.rs against growpage.h: layouts and constants by a C program, functions by their text.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

fn source() -> PathBuf {
    let checkout = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    std::env::var_os("GROWPAGE_SOURCE").map_or_else(checkout, PathBuf::from)
}

fn header() -> String {
    let path = source().join("capi/include/growpage/growpage.h");
    let text = std::fs::read_to_string(path).unwrap();
    // Without comments.
    let mut out = String::new();
    for part in text.split("/*") {
        out.push_str(part.split_once("*/").map_or(part, |(_, after)| after));
    }
    out
}

#[test]
fn layouts_and_constants_are_those_of_c() {
    let mut program = String::from("#include <growpage/growpage.h>\n#include <stdio.h>\n");
    program.push_str("int main(void) {\n");
    let mut expected = String::new();
    for (name, size, fields) in growpage::ffi::layouts() {
        program.push_str(&format!("printf(\"{name} %zu\\n\", sizeof({name}));\n"));
        expected.push_str(&format!("{name} {size}\n"));
        for (field, offset) in fields {
            let line = format!("printf(\"{field} %zu\\n\", offsetof({name}, {field}));\n");
            program.push_str(&line);
            expected.push_str(&format!("{field} {offset}\n"));
        }
    }
    for (name, value) in growpage::ffi::CONSTANTS {
        program.push_str(&format!("printf(\"{name} %d\\n\", {name});\n"));
        expected.push_str(&format!("{name} {value}\n"));
    }
    program.push_str("return GROWPAGE_MAX_DIMS - 6;\n}\n");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(folder.join("layout.c"), program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(compiler)
        .arg("-I")
        .arg(source().join("capi/include"))
        .args(["layout.c", "-o", "layout"])
        .current_dir(&folder)
        .status()
        .expect("a C compiler");
    assert!(built.success());
    let output = Command::new(folder.join("layout")).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// `const growpage_tensor* const*` as Rust writes it.
fn rust_type(c: &str) -> String {
    let spaced = c.replace('*', " * ");
    let mut words = spaced.split_whitespace().filter(|word| *word != "struct").peekable();
    let mut constant = words.next_if_eq(&"const").is_some();
    let mut out = match words.next().unwrap() {
        "int32_t" => "i32",
        "int64_t" => "i64",
        "uint8_t" => "u8",
        "uint64_t" => "u64",
        "size_t" => "usize",
        "double" => "f64",
        "float" => "f32",
        "char" => "c_char",
        "void" => "c_void",
        other => other,
    }
    .to_owned();
    for word in words {
        match word {
            "const" => constant = true,
            "*" => {
                out = format!("*{} {out}", if constant { "const" } else { "mut" });
                constant = false;
            }
            other => panic!("{other} in {c}"),
        }
    }
    out
}

/// The declaration of `extern "C"` for a prototype, without spaces.
fn declaration(prototype: &str) -> (String, String) {
    let (head, arguments) = prototype.split_once('(').unwrap();
    let (result, name) = head.trim().rsplit_once([' ', '\n']).unwrap();
    let split = |argument: &str| {
        let argument = argument.trim().to_owned();
        let at = argument.rfind(|c: char| !c.is_alphanumeric() && c != '_').unwrap() + 1;
        format!("{}:{}", &argument[at..], rust_type(&argument[..at]))
    };
    let arguments: Vec<_> = arguments
        .trim_end_matches(')')
        .split(',')
        .filter(|argument| argument.trim() != "void")
        .map(split)
        .collect();
    let result = match result.trim() {
        "void" => String::new(),
        other => format!("->{}", rust_type(other)),
    };
    let text = format!("pubfn{name}({}){result};", arguments.join(","));
    (name.to_owned(), text.replace(' ', ""))
}

#[test]
fn functions_are_those_of_c() {
    let header = header();
    let ffi = include_str!("../src/ffi.rs");
    let ffi: String = ffi.chars().filter(|c| !c.is_whitespace()).collect();
    let ffi = ffi.replace(",)", ")");
    let mut names = BTreeSet::new();
    for part in header.split("\nGROWPAGE_API ").chain(header.split("\nGROWPAGE_API\n")).skip(1) {
        let prototype = part.split(';').next().unwrap();
        if !prototype.contains("growpage_") || prototype.contains('{') {
            continue;
        }
        let (name, expected) = declaration(prototype);
        assert!(name.contains("dlpack") || ffi.contains(&expected), "{expected}");
        names.insert(name);
    }
    let symbols = std::fs::read_to_string(source().join("capi/symbols.txt")).unwrap();
    assert_eq!(names, symbols.split_whitespace().map(str::to_owned).collect());
}
