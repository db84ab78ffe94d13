//! pcap writer: writes copies of packets to a file that Wireshark and tcpdump read.
//!
//! usage: pcap_writer FILE [COUNT [PORT...]]     ends after COUNT packets (0: never)

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use millrace::{Client, Options, Take};

/// Nanoseconds, this machine's byte order, Ethernet frames of up to 65,535 bytes.
fn header() -> Vec<u8> {
    let mut header = 0xa1b2_3c4d_u32.to_ne_bytes().to_vec();
    header.extend([2_u16, 4].iter().flat_map(|number| number.to_ne_bytes()));
    header.extend([0_u32, 0, 65_535, 1].iter().flat_map(|number| number.to_ne_bytes()));
    header
}

fn write() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: pcap_writer FILE [COUNT [PORT...]]";
    let path = arguments.next().ok_or(usage)?;
    let count = arguments.next().map_or(Ok(0), |text| text.parse::<u64>()).map_err(|_| usage)?;
    let options = Options { take: Take::Copy, ports: arguments.collect(), ..Options::default() };
    let client = Client::attach(None, "pcap writer")?;
    let mut queues = client.open(&options)?;
    let mut file = BufWriter::new(File::create(&path).map_err(|e| format!("{path}: {e}"))?);
    file.write_all(&header())?;
    let Some(channel) = queues.channels.first_mut() else { return Ok(()) };
    let (mut packets, mut frame, mut written) = (Vec::new(), vec![0; 65_535], 0);
    while count == 0 || written < count {
        channel.wait(None)?;
        channel.receive(&mut packets, 256)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        for packet in packets.drain(..) {
            if count == 0 || written < count {
                let length = channel.copy(&packet, &mut frame);
                let record =
                    [now.as_secs() as u32, now.subsec_nanos(), length as u32, length as u32];
                file.write_all(&record.map(u32::to_ne_bytes).concat())?;
                file.write_all(frame.get(..length).unwrap_or_default())?;
                written += 1;
            }
            channel.release(packet);
        }
        // Who looks at the file while it grows, or after the end of this program, sees whole packets.
        file.flush()?;
    }
    println!("{written} packets");
    Ok(())
}

fn main() {
    if let Err(error) = write() {
        eprintln!("pcap_writer: {error}");
        std::process::exit(1);
    }
}
