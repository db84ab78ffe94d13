//! What the file has declared so far: names of interfaces, their use, their networks.

use crate::config::vrf::named;
use crate::config::{DEFAULT_VRF, Device, Features};
use crate::net::{InterfaceAddress, shortened};

use super::nearest::nearest;
use super::report::Report;
use super::section::{Section, Value};

/// What an interface is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Port,
    Vlan,
    Bridge,
}

impl What {
    const fn word(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Vlan => "VLAN sub-interface",
            Self::Bridge => "bridge",
        }
    }
}

/// An interface that was declared.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) what: What,
    pub(super) mtu: u16,
    pub(super) numbered: bool,
    features: Features,
    in_vrf: bool,
    line: usize,
    /// What took it out of routing, as in "a member of bridge 'br0'".
    layer2: Option<String>,
}

/// Everything that was declared.
#[derive(Default)]
pub(super) struct Names {
    interfaces: Vec<Declared>,
    devices: Vec<(Device, usize)>,
    networks: Vec<Network>,
    vrfs: Vec<(String, usize)>,
}

/// An address of an interface.
struct Network {
    interface: String,
    vrf: Option<String>,
    address: InterfaceAddress,
    line: usize,
}

/// What matters of an interface besides its name.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub(super) mtu: u16,
    /// It has addresses.
    pub(super) numbered: bool,
    pub(super) features: Features,
    /// It is in another VRF than the default one.
    pub(super) in_vrf: bool,
}

impl Names {
    /// Reads and claims the `name` of an interface; a nameless one goes by a name of its own.
    pub(super) fn claim(
        &mut self,
        report: &Report,
        section: &mut Section<'_>,
        (list, what): (&str, What),
    ) -> String {
        let Some(value) = section.required("name", "\"...\", a name of its own") else {
            return String::new();
        };
        let Some(name) = well_formed(&value, "an interface") else { return String::new() };
        section.rename(list, name);
        if let Some(other) = self.get(name) {
            let (what, line) = (other.what.word(), other.line);
            let problem = format!("'{name}' is the name of the {what} on line {line} too");
            value.wrong(problem, "give each port, vlan and bridge its own name".to_owned());
            return name.to_owned();
        }
        self.interfaces.push(Declared {
            name: name.to_owned(),
            what,
            mtu: 0,
            numbered: false,
            features: Features::default(),
            in_vrf: false,
            line: report.line(section.at()),
            layer2: None,
        });
        name.to_owned()
    }

    /// Reads and claims the `name` of a VRF.
    pub(super) fn claim_vrf(
        &mut self,
        report: &Report,
        section: &mut Section<'_>,
    ) -> Option<String> {
        let value = section.required("name", "\"...\", a name of its own")?;
        let name = well_formed(&value, "a VRF")?;
        section.rename("vrf", name);
        if name == DEFAULT_VRF {
            let problem = format!("'{DEFAULT_VRF}' is the VRF of all that is in no other");
            value.wrong(problem, "use another name".to_owned());
            return None;
        }
        if let Some((_, line)) = self.vrfs.iter().find(|(known, _)| known == name) {
            let problem = format!("'{name}' is the name of the VRF on line {line} too");
            value.wrong(problem, "give each VRF its own name".to_owned());
            return None;
        }
        self.vrfs.push((name.to_owned(), report.line(section.at())));
        Some(name.to_owned())
    }

    /// Reads the `vrf` of an interface; none: it is in the default one.
    pub(super) fn vrf(&self, section: &mut Section<'_>) -> Option<String> {
        let value = section.value("vrf")?;
        let name = named(Some(value.text()?.to_owned()))?;
        let known = || self.vrfs.iter().map(|(known, _)| known.as_str());
        if !known().any(|known| known == name) {
            let remedy = match nearest(&name, known()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => "declare it with [[vrf]]".to_owned(),
            };
            value.wrong(format!("'{}' is no VRF", shortened(&name)), remedy);
        }
        Some(name)
    }

    /// Notes what the interface is that was claimed last under that name.
    pub(super) fn describe(&mut self, name: &str, traits: Traits) {
        if let Some(declared) = self.interfaces.iter_mut().find(|known| known.name == name) {
            declared.mtu = traits.mtu;
            declared.numbered = traits.numbered;
            (declared.features, declared.in_vrf) = (traits.features, traits.in_vrf);
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Declared> {
        self.interfaces.iter().find(|known| known.name == name)
    }

    /// The interface that a value names, if it is one of the kinds in `wanted`.
    pub(super) fn resolve(&self, value: &Value<'_>, wanted: &[What]) -> Option<&Declared> {
        let name = value.text()?;
        let of_kind = |known: &&Declared| wanted.contains(&known.what);
        let found = self.interfaces.iter().filter(of_kind).find(|known| known.name == name);
        if found.is_none() {
            let words: Vec<_> = wanted.iter().map(|what| what.word()).collect();
            let problem = format!("'{}' is no {}", shortened(name), words.join(" or "));
            let known: Vec<_> =
                self.interfaces.iter().filter(of_kind).map(|known| known.name.as_str()).collect();
            let remedy = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None if known.is_empty() => "declare one first".to_owned(),
                None => format!("use one of {}", shortened(&known.join(", "))),
            };
            value.wrong(problem, remedy);
        }
        found
    }

    /// Takes an interface for layer 2: it must have no addresses and no other such use.
    pub(super) fn take(&mut self, value: &Value<'_>, name: &str, becomes: &str) {
        let Some(declared) = self.interfaces.iter_mut().find(|known| known.name == name) else {
            return;
        };
        if let Some(other) = &declared.layer2 {
            let problem = format!("'{name}' is {other} already");
            value.wrong(problem, "use an interface in one bridge or cross-connect only".to_owned());
        } else if declared.numbered {
            let problem = format!("'{name}' has addresses, which {becomes} cannot have");
            let remedy = "remove its addresses, or give them to the bridge".to_owned();
            value.wrong(problem, remedy);
        } else if let Some(key) = declared.features.keys().next() {
            let problem = format!("'{name}' has {key}, which is for packets that are routed");
            value.wrong(problem, "remove it, or give it to the bridge".to_owned());
        } else if declared.in_vrf {
            let problem = format!("'{name}' has vrf, which is for packets that are routed");
            value.wrong(problem, "remove it, or give it to the bridge".to_owned());
        }
        declared.layer2.get_or_insert_with(|| becomes.to_owned());
    }

    /// Notes a device; two ports cannot open the same one.
    pub(super) fn open(&mut self, report: &Report, value: &Value<'_>, device: &Device) {
        let line = report.line(value.at());
        // A memif socket has many ids, an interface many queues for AF_XDP, and there may be any
        // number of readers of one capture file.
        let same = |(other, _): &&(Device, usize)| match device.kind() {
            "null" | "pcap" => false,
            "memif" | "afxdp" => other == device,
            kind => other.kind() == kind && other.argument() == device.argument(),
        };
        match self.devices.iter().find(same) {
            Some((_, first)) => {
                let problem = format!("'{device}' is the device of the port on line {first} too");
                value.wrong(problem, "give each port its own device".to_owned());
            }
            None => self.devices.push((device.clone(), line)),
        }
    }

    /// Notes an address; networks of two interfaces of one VRF cannot overlap.
    pub(super) fn number(
        &mut self,
        report: &Report,
        value: &Value<'_>,
        (interface, vrf): (&str, Option<&str>),
        address: InterfaceAddress,
    ) -> bool {
        let link_local = |a: InterfaceAddress| match a.address() {
            std::net::IpAddr::V6(a) => a.is_unicast_link_local(),
            std::net::IpAddr::V4(_) => false,
        };
        let of_vrf = |known: &&Network| known.vrf.as_deref() == vrf;
        for Network { interface: other, address: known, line, .. } in
            self.networks.iter().filter(of_vrf)
        {
            if other == interface {
                if known.address() == address.address() {
                    let problem = format!("{} is given twice", address.address());
                    value.wrong(problem, "give it once".to_owned());
                    return false;
                }
            } else if !link_local(address) && known.network().overlaps(address.network()) {
                let (mine, theirs) = (address.network(), known.network());
                let problem = format!("{mine} overlaps {theirs} of '{other}' on line {line}");
                let remedy =
                    "give each interface networks of its own, or a VRF of its own".to_owned();
                value.wrong(problem, remedy);
                return false;
            }
        }
        let line = report.line(value.at());
        let (interface, vrf) = (interface.to_owned(), vrf.map(str::to_owned));
        self.networks.push(Network { interface, vrf, address, line });
        true
    }
}

/// The name of an interface or a VRF: `what`.
fn well_formed<'a>(value: &Value<'a>, what: &str) -> Option<&'a str> {
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if name.len() <= 32 && starts && name.chars().all(fits) {
        return Some(name);
    }
    let problem = format!("'{}' is no name of {what}", shortened(name));
    let remedy = "use up to 32 letters, digits, '.', '_', '-', starting with a letter or digit";
    value.wrong(problem, remedy.to_owned());
    None
}
