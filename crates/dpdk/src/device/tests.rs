use super::*;

fn refused(text: &str) -> String {
    text.parse::<Device>().map(|device| device.to_string()).unwrap_err().to_string()
}

#[test]
fn every_example_parses_and_prints_itself() {
    for kind in DeviceKind::ALL {
        let device: Device = kind.example().parse().unwrap();
        assert_eq!(device.kind(), *kind);
        assert_eq!(device.to_string(), kind.example());
    }
}

#[test]
fn a_wrong_kind_names_all_kinds() {
    for text in ["", "eth0", "dpdk:eth0", ":", "AFXDP:eth1"] {
        let words = refused(text);
        for kind in DeviceKind::ALL {
            assert!(words.contains(kind.example()), "{text}: {words}");
        }
    }
}

#[test]
fn arguments_are_checked() {
    assert!(refused("pci:81:00.0").contains("PCI address"));
    assert!(refused("pci:0000.81:00:0").contains("PCI address"));
    assert!(refused("afpacket:").contains("missing"));
    assert!(refused("afpacket:a-name-of-16-chr").contains("15 characters"));
    assert!(refused("tap:a/b").contains("`/`"));
    assert!(refused("null:x").contains("no argument"));
    assert!(refused("pcap:a b").contains("spaces"));
    assert!(refused("pcap:[a").contains("brackets"));
    assert!(refused(&format!("memif:/{}", "x".repeat(107))).contains("107"));
    assert!(format!("memif:/{}", "x".repeat(106)).parse::<Device>().is_ok());
}

#[test]
fn options_are_checked() {
    assert!(refused("afxdp:e,queues").contains("name=value"));
    let words = refused("afxdp:e,queue=1");
    assert!(words.contains("no option `queue`") && words.contains("start_queue (0 to 1023)"));
    assert!(refused("afxdp:e,queues=0").contains("1 to 64"));
    assert!(refused("afxdp:e,queues=1,queues=2").contains("twice"));
    assert!(refused("memif:/a,role=master").contains("server or client"));
    assert!(refused("memif:/a,mac=2:0:0:0:0:1").contains("MAC address"));
    assert!(refused("pcap:a,out=").contains("file name"));
}

#[test]
fn driver_arguments() {
    let arguments = |text: &str| text.parse::<Device>().unwrap().arguments(2, 1024, None);
    assert_eq!(arguments("afxdp:e"), "iface=e,queue_count=2,busy_budget=0");
    assert_eq!(
        arguments("afxdp:e,queues=4,busy_budget=64"),
        "iface=e,queue_count=4,busy_budget=64"
    );
    assert_eq!(
        arguments("afpacket:e,framecnt=512"),
        "iface=e,framecnt=512,qpairs=2,framesz=2048,blocksz=4096"
    );
    let large: Device = "afpacket:e".parse().unwrap();
    assert_eq!(
        large.arguments(1, 1000, Some(9000)),
        "iface=e,qpairs=1,framesz=9216,blocksz=73728,framecnt=1024"
    );
    assert_eq!(
        arguments("memif:/s,role=client,id=3"),
        "socket=/s,role=client,id=3,socket-abstract=no"
    );
    assert_eq!(arguments("vhost-user:/s"), "iface=/s,queues=2");
    assert_eq!(arguments("virtio-user:/s,server=1"), "path=/s,server=1,queues=2");
    assert_eq!(arguments("pcap:i,out=o,infinite=1"), "rx_pcap=i,tx_pcap=o,infinite_rx=1");
    assert_eq!(arguments("null"), "");
    let pci: Device = "pci:0000:81:00.0,mprq_en=1".parse().unwrap();
    assert_eq!(pci.allow(), "0000:81:00.0,mprq_en=1");
}

#[test]
fn what_is_missing_is_named() {
    let missing = |text: &str| text.parse::<Device>().unwrap().check().unwrap_err().to_string();
    let words = missing("afpacket:mr-none0");
    assert!(words.contains("mr-none0") && words.contains("lo"), "{words}");
    assert!(missing("pcap:/nonexistent/a.pcap").contains("/nonexistent/a.pcap"));
    assert!(missing("memif:/nonexistent/a").contains("`/nonexistent`"));
    assert!(missing("virtio-user:/nonexistent/a").contains("/nonexistent/a"));
}
