//! Any valid configuration is read as it is written; no text panics.

use std::path::Path;

use proptest::prelude::*;

use crate::config::Config;

/// Ports, their sub-interfaces, routes over them: valid by construction.
fn valid() -> impl Strategy<Value = String> {
    let port = (68_u16..=9_216, 1_u16..=4, any::<bool>(), proptest::option::of(0_u8..=0x7f));
    let route = (0_usize..8, 1_u8..=16, 1_u8..=16, 0_u8..6);
    let ports = proptest::collection::vec(port, 1..8);
    let routes = proptest::collection::vec(route, 0..20);
    let base = (1_u16..=256, 0_u64..=1_000_000, any::<bool>(), 1_u32..=1_000_000);
    (base, ports, routes).prop_map(|((vector, drain, busy, limit), ports, routes)| {
        let poll = if busy { "busy" } else { "adaptive" };
        let mut text = format!(
            "[memory]\nbuffers=100000\n[workers]\nvector={vector}\ndrain='{drain}us'\npoll='{poll}'\n\
             [limits]\nnext-hops={}\nroutes4={}\n",
            limit.max(64),
            limit.max(100)
        );
        for (index, (mtu, queues, promiscuous, mac)) in ports.iter().enumerate() {
            text += &format!(
                "[[port]]\nname='p{index}'\ndevice='tap:t{index}'\nmtu={mtu}\nrx-queues={queues}\n\
                 promiscuous={promiscuous}\naddresses=['10.{index}.0.1/16']\n"
            );
            if let Some(mac) = mac {
                text += &format!("mac='02:00:00:00:00:{mac:02x}'\n");
            }
            text += &format!("[[vlan]]\nname='p{index}.7'\nport='p{index}'\nid=7\n");
            // All of these have one network, each in a VRF of its own.
            text += &format!(
                "[[vrf]]\nname='v{index}'\n[[vlan]]\nname='p{index}.8'\nport='p{index}'\nid=8\n\
                 vrf='v{index}'\naddresses=['10.0.0.1/16']\n"
            );
        }
        for (index, (port, first, second, kind)) in routes.iter().enumerate() {
            let port = port % ports.len();
            text += &format!("[[route]]\nprefix='192.168.{index}.0/24'\n");
            text += &match kind {
                0 => format!("via='10.{port}.0.9'\n"),
                1 => format!("port='p{port}.7'\n"),
                2 => "kind='unreachable'\n".to_owned(),
                4 => format!("lookup='v{port}'\n"),
                5 => format!("vrf='v{port}'\nvia='10.0.0.9'\n"),
                _ => format!(
                    "via=[{{address='10.{port}.0.2',weight={first}}},{{address='10.{port}.0.3',weight={second}}}]\n"
                ),
            };
        }
        text
    })
}

/// Lines that look right often enough to reach far.
fn near_valid() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("[[port]]".to_owned()),
        Just("[[route]]".to_owned()),
        Just("[[bridge]]".to_owned()),
        Just("[[vlan]]".to_owned()),
        Just("[[vrf]]".to_owned()),
        Just("[[neighbor]]".to_owned()),
        Just("[[cross-connect]]".to_owned()),
        Just("[workers]".to_owned()),
        ("(name|device|addresses|via|members|from|to|prefix|mask|port|queues|cores|mac|id|mtu|vrf|lookup)",
         "('[a-f0-9:./,]{0,9}'|[0-9]{1,20}|true|\\['[a-z]?', *[0-9]?\\]|\\{ ?address='x'\\}|-1|0x1f|1e9|1979-05-27)")
            .prop_map(|(key, value)| format!("{key} = {value}")),
    ];
    proptest::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
}

fn parse(text: &str) -> Result<Config, Vec<crate::ConfigError>> {
    Config::parse_for(text, Path::new("/etc/m.toml"), &[0, 1, 2])
}

proptest! {
    #[test]
    fn what_is_written_is_read(text in valid()) {
        let config = parse(&text).map_err(|e| TestCaseError::fail(format!("{e:?}\n{text}")))?;
        let written = toml::to_string(&config).unwrap();
        prop_assert_eq!(parse(&written), Ok(config));
    }

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn no_near_miss_panics(text in near_valid()) {
        if let Err(errors) = parse(&text) {
            prop_assert!(!errors.is_empty());
            let lines = text.lines().count() + 1;
            for error in errors {
                prop_assert!((1..=lines).contains(&error.line), "{}", error);
                prop_assert!(!error.problem.is_empty() && !error.remedy.is_empty());
            }
        }
    }
}
