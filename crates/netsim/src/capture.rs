//! A run as a pcapng file, at nanosecond resolution; the two sides of the path are two interfaces.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};

/// Packets as they were sent: when, from which side, bytes.
pub(crate) type Record = (u64, u32, Vec<u8>);

/// Writes them.
pub(crate) fn write(records: &[Record], target: impl Write) -> io::Result<()> {
    let failed = |error: PcapError| io::Error::other(error);
    let mut writer = PcapNgWriter::new(target).map_err(failed)?;
    for name in ["left", "right"] {
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        writer.write_pcapng_block(interface).map_err(failed)?;
    }
    for (at, side, bytes) in records {
        let packet = EnhancedPacketBlock {
            interface_id: *side,
            timestamp: Duration::from_nanos(*at),
            original_len: bytes.len() as u32,
            data: Cow::Borrowed(bytes),
            options: Vec::new(),
        };
        writer.write_pcapng_block(packet).map_err(failed)?;
    }
    writer.into_inner().flush()
}
