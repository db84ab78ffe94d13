//! `input-features`, `output-features`: where the two feature arcs begin; and what the features on them have in common.
//!
//! The input arc needs `interface` and `network` of a validated packet, with its destination address noted for the look-up;
//! the output arc `egress`, `network` and `next_hop` of one with its new Ethernet header. Both need a way to go on
//! ([`Context::detour`]).

use graph::{Context, Edge, FeatureSet, NoEdge, Node, Onward, Picked, Reason, Slot, Vector};

use super::family;
use super::snapshot::Snapshot;
use crate::state::{InputFeature, Interface, Interfaces, OutputFeature};

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arc {
    /// By the interface that packets came in by.
    Input,
    /// By the interface that packets leave by.
    Output,
}

impl Arc {
    /// Places of its features, and the names of their nodes.
    fn nodes(self) -> Vec<(u8, &'static str)> {
        match self {
            Self::Input => {
                InputFeature::NODES.map(|(feature, name)| (feature as u8, name)).to_vec()
            }
            Self::Output => {
                OutputFeature::NODES.map(|(feature, name)| (feature as u8, name)).to_vec()
            }
        }
    }

    /// The interface whose features a packet meets on this arc.
    #[inline]
    pub(super) fn interface<'a>(
        self,
        interfaces: &'a Interfaces,
        vector: &Vector,
        slot: Slot,
    ) -> Option<&'a Interface> {
        let at = usize::from(slot);
        interfaces.get(match self {
            Self::Input => vector.interface[at],
            Self::Output => vector.egress[at],
        })
    }

    /// `None`: the interface is gone.
    #[inline]
    fn features(self, interfaces: &Interfaces, vector: &Vector, slot: Slot) -> Option<FeatureSet> {
        let interface = self.interface(interfaces, vector, slot)?;
        Some(match self {
            Self::Input => interface.input_features(),
            Self::Output => interface.features.output(),
        })
    }

    /// Sends packets to their first feature from `place` on, or off the arc. Where the interface is gone, nobody knows what
    /// they had still to go through.
    fn send_on<N: Edge>(
        self,
        interfaces: &Interfaces,
        slots: &[Slot],
        place: u8,
        cx: &mut Context<'_, Onward<N>>,
    ) {
        for &slot in slots {
            let Some(features) = self.features(interfaces, cx.vector, slot) else {
                cx.drop(slot, Reason::NoPort);
                continue;
            };
            match features.from(place) {
                Some(place) => cx.send(slot, Onward::Feature(place)),
                None => cx.resume(slot),
            }
        }
    }
}

/// Sends validated packets to the input arc, which begins at `first`, where their interface has features, and then to `then`.
/// Where it is gone, they are dropped: it may have been in any VRF.
#[inline]
pub(super) fn send_by_input<N: Edge>(
    interfaces: &Interfaces,
    slots: &[Slot],
    (first, then): (N, N),
    cx: &mut Context<'_, N>,
) {
    let features = |vector: &Vector, slot| Arc::Input.features(interfaces, vector, slot);
    let none = |slot: &Slot| features(cx.vector, *slot).is_some_and(FeatureSet::is_empty);
    if slots.iter().all(none) {
        return cx.send_all(slots, then);
    }
    for &slot in slots {
        match features(cx.vector, slot) {
            Some(set) if set.is_empty() => cx.send(slot, then),
            Some(_) => cx.detour(slot, first, then),
            None => cx.drop(slot, Reason::NoPort),
        }
    }
}

/// Where an arc begins.
pub(crate) struct Begin {
    arc: Arc,
    interfaces: Snapshot<Interfaces>,
}

impl Begin {
    /// `input-features`
    pub(crate) fn input(interfaces: Snapshot<Interfaces>) -> Self {
        Self { arc: Arc::Input, interfaces }
    }

    /// `output-features`
    pub(crate) fn output(interfaces: Snapshot<Interfaces>) -> Self {
        Self { arc: Arc::Output, interfaces }
    }
}

impl Node for Begin {
    type Next = Onward<NoEdge>;

    fn name(&self) -> &'static str {
        match self.arc {
            Arc::Input => "input-features",
            Arc::Output => "output-features",
        }
    }

    fn edges(&self) -> Vec<(Self::Next, &'static str)> {
        Onward::on(&self.arc.nodes())
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Self::Next>) {
        self.arc.send_on(self.interfaces.get(), slots, 0, cx);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        family::describe(vector.network(slot))
    }
}

/// What a feature does with packets.
pub(crate) trait Feature: Send + 'static {
    /// Where it sends packets off the arc.
    type Next: Edge;

    /// Treats packets of interfaces that have it. Those that it puts into `on` go on along the arc; all others it must dispose
    /// of. `of`: where the interfaces are, and which of them counts.
    fn process(
        &mut self,
        of: (Arc, &Interfaces),
        slots: &[Slot],
        cx: &mut Context<'_, Onward<Self::Next>>,
        on: &mut Picked,
    );

    /// What it sees in a packet that it is about to process, in words.
    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        family::describe(vector.network(slot))
    }
}

/// A feature as a node of its arc.
pub(crate) struct OnArc<F> {
    arc: Arc,
    place: u8,
    interfaces: Snapshot<Interfaces>,
    feature: F,
}

impl<F> OnArc<F> {
    /// On the input arc.
    pub(crate) fn input(place: InputFeature, interfaces: Snapshot<Interfaces>, feature: F) -> Self {
        Self { arc: Arc::Input, place: place as u8, interfaces, feature }
    }

    /// On the output arc.
    pub(crate) fn output(
        place: OutputFeature,
        interfaces: Snapshot<Interfaces>,
        feature: F,
    ) -> Self {
        Self { arc: Arc::Output, place: place as u8, interfaces, feature }
    }
}

impl<F: Feature> Node for OnArc<F> {
    type Next = Onward<F::Next>;

    fn name(&self) -> &'static str {
        let nodes = self.arc.nodes();
        nodes.iter().find(|(place, _)| *place == self.place).map_or("", |(_, name)| *name)
    }

    fn edges(&self) -> Vec<(Self::Next, &'static str)> {
        Onward::on(&self.arc.nodes())
    }

    fn process(&mut self, slots: &[Slot], cx: &mut Context<'_, Self::Next>) {
        let interfaces = self.interfaces.get();
        let mut on = Picked::new();
        self.feature.process((self.arc, interfaces), slots, cx, &mut on);
        self.arc.send_on(interfaces, on.of(slots), self.place + 1, cx);
    }

    fn describe(&self, vector: &Vector, slot: Slot) -> String {
        self.feature.describe(vector, slot)
    }
}
