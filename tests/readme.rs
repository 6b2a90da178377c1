//! The README's `console` blocks are run and compared: what it shows is what the tool prints.

#[test]
fn the_readme_shows_what_the_tool_prints() {
    trycmd::TestCases::new().case("README.md");
}
