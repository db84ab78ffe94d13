//! Trace and capture of packets that a port reads from a file, over and over.
#![allow(missing_docs, reason = "a test program")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod instance;

use std::fs;

use instance::{Instance, SMALL};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A UDP packet to the port's MAC address, for a network behind a blackhole route.
fn packet() -> Vec<u8> {
    let mut frame = Vec::from(MAC);
    frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    let header = [0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 1, 2, 10, 9, 0, 1];
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    frame.extend(&header[..10]);
    frame.extend(sum.to_be_bytes());
    frame.extend(&header[12..]);
    frame.extend([0, 53, 0, 53, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

fn start() -> (Instance, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let header = PcapHeader { datalink: DataLink::ETHERNET, ..PcapHeader::default() };
    let file = fs::File::create(&path).unwrap();
    let mut writer = PcapWriter::with_header(file, header).unwrap();
    let frame = packet();
    let length = u32::try_from(frame.len()).unwrap();
    writer.write_packet(&PcapPacket::new(std::time::Duration::ZERO, length, &frame)).unwrap();
    let daemon = Instance::start(&format!(
        "{SMALL}[[port]]\nname = \"file\"\ndevice = \"pcap:{},infinite=1\"\n\
         mac = \"02:00:00:00:00:01\"\naddresses = [\"10.0.1.1/24\"]\n\
         [[route]]\nprefix = \"10.9.0.0/16\"\nkind = \"blackhole\"\n",
        path.display()
    ));
    (daemon, folder)
}

#[test]
fn a_trace_tells_the_way_of_a_packet_to_its_end() {
    let (daemon, _folder) = start();
    let wish = r#"{"count": 2, "port": "file", "host": "10.9.0.1", "protocol": "udp"}"#;
    let answer = daemon.request("POST", "/v1/trace", wish);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.text();
    let steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for packet in 0..2 {
        let way: Vec<&Value> = steps.iter().filter(|step| step["packet"] == packet).collect();
        assert_eq!(way[0]["node"], "ethernet-input", "{text}");
        let last = way.last().unwrap();
        assert!(last["fate"].as_str().unwrap().starts_with("dropped: blackhole"), "{text}");
    }
    assert!(steps.iter().all(|step| step["packet"].as_u64().unwrap() < 2), "{text}");
}

#[test]
fn a_capture_is_pcapng_with_the_reason_of_a_drop_and_there_is_one_at_a_time() {
    let (daemon, _folder) = start();
    let wish = r#"{"count": 3, "direction": "drop", "snaplen": 64}"#;
    let answer = daemon.request("POST", "/v1/capture", wish);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut reader = PcapNgReader::new(answer.body.as_slice()).unwrap();
    let (mut packets, mut ports) = (0, Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(port) => ports.push(format!("{:?}", port.options)),
            Block::EnhancedPacket(found) => {
                packets += 1;
                assert_eq!(found.data.as_ref(), packet());
                let options = format!("{:?}", found.options);
                assert!(options.contains("dropped: blackhole"), "{options}");
            }
            _ => {}
        }
    }
    assert_eq!((packets, ports.len()), (3, 1));
    assert!(ports[0].contains("file"), "{ports:?}");

    let socket = daemon.socket();
    let endless = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    use std::io::{Read, Write};
    write!(
        &endless,
        "POST /v1/capture HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    (&endless).read_exact(&mut [0; 500]).unwrap();
    let second = daemon.request("POST", "/v1/capture", "{}");
    assert_eq!((second.status, &second.json()["error"]["code"]), (429, &Value::from("busy")));
    // When the client hangs up, the next one may.
    drop(endless);
    let begin = std::time::Instant::now();
    while daemon.request("POST", "/v1/capture", r#"{"count": 1}"#).status != 200 {
        assert!(begin.elapsed() < instance::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
