//! Arbitrary text as configuration: it is refused with reasons, or what it gives stands a second
//! reading.
#![no_main]

use std::path::Path;

use control::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let file = Path::new("fuzz.toml");
    match Config::parse_for(text, file, &[0, 1, 2, 3]) {
        Ok(config) => {
            assert_eq!(Config::parse_for(text, file, &[0, 1, 2, 3]).as_ref(), Ok(&config));
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(errors.iter().all(|error| !error.problem.is_empty()), "{errors:?}");
        }
    }
});
