//! Four of the paper's queries in differential dataflow, in its best formulation: what is summed up is the difference
//! of a row, so that joins multiply it and `count_total` adds it up.
//!
//! `fresh QUERY EVENTS WARM BATCH SECONDS`: EVENTS is a file of whole numbers, six for each event (+1 or -1, its
//! relation, four cells). The first WARM events lead to the steady state. Then the answer is brought up to date after
//! each BATCH events, and its changes are taken, for so many seconds at most. It prints the events and the nanoseconds
//! of CPU, and then the rows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use differential_dataflow::input::InputSession;
use differential_dataflow::operators::count::CountTotal;
use differential_dataflow::VecCollection;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::Scope;

type Cells = [i64; 4];
type Time = u64;
type Rows<'a> = VecCollection<'a, Time, Cells, i64>;
type Answer = Rc<RefCell<HashMap<Cells, i64>>>;

const MARCH: i64 = 9204; // 1995-03-15 in days
const HUNDRED: i64 = 100_00; // of a quantity in hundredths
const RELATIONS: usize = 3;

fn main() {
    let given: Vec<String> = std::env::args().collect();
    let (query, warm) = (given[1].clone(), number(&given[3]));
    let (batch, seconds) = (number(&given[4]), number(&given[5]) as u64);
    let events = read(&given[2]);
    timely::execute_directly(move |worker| {
        let answer = Answer::default();
        let mut probe = Handle::new();
        let mut inputs: Vec<InputSession<Time, Cells, i64>> =
            (0..RELATIONS).map(|_| InputSession::new()).collect();
        worker.dataflow(|scope: Scope<'_, Time>| {
            let mut rows = inputs.iter_mut().map(|input| input.to_collection(scope));
            let mut next = || rows.next().unwrap();
            let (a, b, c) = (next(), next(), next());
            let (told, sums) = (answer.clone(), maintained(&query, a, b, c));
            sums.inspect(move |(row, _, times)| *told.borrow_mut().entry(*row).or_insert(0) += times)
                .probe_with(&mut probe);
        });
        let mut now: Time = 0;
        let mut taken = 0;
        let (mut cpu, mut begun) = (0, Instant::now());
        while taken < events.len() && begun.elapsed() < Duration::from_secs(seconds) {
            let end = if taken < warm { warm } else { events.len().min(taken + batch) };
            for [op, relation, a, b, c, d] in &events[taken..end] {
                inputs[*relation as usize].update([*a, *b, *c, *d], *op);
            }
            now += 1;
            for input in inputs.iter_mut() {
                input.advance_to(now);
                input.flush();
            }
            worker.step_while(|| probe.less_than(&now));
            if taken < warm {
                (cpu, begun) = (spent(), Instant::now());
            }
            taken = end;
        }
        println!("{} {}", taken - warm, spent() - cpu);
        for (row, times) in answer.borrow().iter().filter(|(_, times)| **times != 0) {
            println!("{} {} {} {} {}", times, row[0], row[1], row[2], row[3]);
        }
    });
}

fn maintained<'a>(query: &str, a: Rows<'a>, b: Rows<'a>, c: Rows<'a>) -> Rows<'a> {
    match query {
        "bsv" => bsv(a),
        "q3" => q3(a, b, c),
        "q11" => q11(a, b),
        "q18" => q18(a, b, c),
        _ => panic!("no such query: {query}"),
    }
}

/// bids (broker, worth): the sum of worths, which who reads it squares
fn bsv(bids: Rows<'_>) -> Rows<'_> {
    let worths = bids.explode(|[broker, worth, ..]| Some((broker, worth)));
    worths.count_total_core().map(|(broker, sum)| [broker, sum, 0, 0])
}

/// customer (key, is in the segment), orders (key, customer, date, priority), lineitem (order, revenue, shipped)
fn q3<'a>(customer: Rows<'a>, orders: Rows<'a>, lineitem: Rows<'a>) -> Rows<'a> {
    let customers = customer.filter(|c| c[1] == 1).map(|c| (c[0], ()));
    let early = orders.filter(|o| o[2] < MARCH).map(|[key, customer, date, priority]| (customer, (key, date, priority)));
    let late = lineitem.filter(|l| l[2] > MARCH).explode(|[order, revenue, ..]| Some(((order, ()), revenue)));
    let theirs = early.join_map(customers, |_, (key, date, priority), _| (*key, (*date, *priority)));
    let sold = theirs.join_map(late, |key, (date, priority), _| (*key, *date, *priority));
    sold.count_total_core().map(|((key, date, priority), sum)| [key, date, priority, sum])
}

/// partsupp (part, supplier, worth), supplier (key)
fn q11<'a>(partsupp: Rows<'a>, supplier: Rows<'a>) -> Rows<'a> {
    let suppliers = supplier.map(|s| (s[0], ()));
    let worths = partsupp.explode(|[part, supplier, worth, _]| Some(((supplier, part), worth)));
    let parts = worths.join_map(suppliers, |_, part, _| *part);
    parts.count_total_core().map(|(part, sum)| [part, sum, 0, 0])
}

/// customer (key), orders (key, customer), lineitem (order, quantity)
fn q18<'a>(customer: Rows<'a>, orders: Rows<'a>, lineitem: Rows<'a>) -> Rows<'a> {
    let customers = customer.map(|c| (c[0], ()));
    let quantities = lineitem.explode(|[order, quantity, ..]| Some((order, quantity)));
    let large = quantities.count_total_core::<i64>().filter(|(_, quantity)| *quantity > HUNDRED);
    let theirs = orders.map(|o| (o[1], o[0])).join_map(customers, |customer, order, _| (*order, *customer));
    let sums = theirs.join_map(large, |_, customer, quantity| (*customer, *quantity));
    let all = sums.explode(|(customer, quantity)| Some((customer, quantity)));
    all.count_total_core().map(|(customer, sum)| [customer, sum, 0, 0])
}

fn number(text: &str) -> usize {
    text.parse().unwrap()
}

fn read(path: &str) -> Vec<[i64; 6]> {
    let bytes = std::fs::read(path).unwrap();
    let cell = |event: &[u8], i: usize| i64::from_le_bytes(event[8 * i..8 * i + 8].try_into().unwrap());
    bytes.chunks_exact(48).map(|event| std::array::from_fn(|i| cell(event, i))).collect()
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// The CPU time of this thread, which is the only one that works: Linux counts it to the nanosecond.
fn spent() -> u64 {
    const THREAD_CPUTIME: i32 = 3;
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    assert_eq!(unsafe { clock_gettime(THREAD_CPUTIME, &mut time) }, 0);
    (time.seconds * 1_000_000_000 + time.nanoseconds) as u64
}
