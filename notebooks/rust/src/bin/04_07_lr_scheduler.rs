//! Chapter 4.7: schedules of the learning rate.
use burn_book::twin;

// ANCHOR: setup
use burn::backend::NdArray;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::noam::NoamLrSchedulerConfig;
use burn::lr_scheduler::LrScheduler;
use burn::tensor::backend::Backend;
// ANCHOR_END: setup

// ANCHOR: rates
fn rates(scheduler: &mut impl LrScheduler, count: usize) -> Vec<f64> {
    (0..count).map(|_| scheduler.step()).collect()
}

// ANCHOR_END: rates
// ANCHOR: triangle
#[derive(Clone)]
struct Triangle {
    steps: i64,
    low: f64,
    high: f64,
    flank: i64,
}

impl LrScheduler for Triangle {
    type Record<B: Backend> = i64;

    fn step(&mut self) -> f64 {
        let place = (self.steps % (2 * self.flank) - self.flank).abs();
        self.steps += 1;
        let share = place as f64 / self.flank as f64;
        self.high - (self.high - self.low) * share
    }

    fn to_record<B: Backend>(&self) -> i64 {
        self.steps
    }

    fn load_record<B: Backend>(mut self, record: i64) -> Self {
        self.steps = record;
        self
    }
}

// ANCHOR_END: triangle
fn main() {
    twin("linear");
    // ANCHOR: linear
    let mut schedule = LinearLrSchedulerConfig::new(0.9, 0.5, 4).init();
    for _ in 0..6 {
        println!("{:.4}", schedule.step());
    }
    // ANCHOR_END: linear

    twin("rates");
    // ANCHOR: rates
    let config =
        CosineAnnealingLrSchedulerConfig::new(0.8, 50).with_min_lr(0.1);
    let found = rates(&mut config.init(), 51);
    println!("{} values", found.len());
    // ANCHOR_END: rates
    for (k, rate) in found.iter().enumerate() {
        let angle = std::f64::consts::PI * k as f64 / 50.0;
        let by_hand = 0.1 + 0.5 * (0.8 - 0.1) * (1.0 + angle.cos());
        assert!((rate - by_hand).abs() < 1e-9);
    }

    twin("exponential");
    // ANCHOR: exponential
    let halving = ExponentialLrSchedulerConfig::new(0.8, 0.5);
    println!("{:.4?}", rates(&mut halving.init(), 6));
    // ANCHOR_END: exponential

    twin("noam");
    // ANCHOR: noam
    let config = NoamLrSchedulerConfig::new(1.0)
        .with_model_size(64)
        .with_warmup_steps(20);
    let noam = rates(&mut config.init(), 100);
    let (best, rate) = noam
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .unwrap();
    println!("{} {rate:.4}", best + 1);
    // ANCHOR_END: noam

    twin("record");
    // ANCHOR: record
    let config = CosineAnnealingLrSchedulerConfig::new(0.5, 79);
    let mut schedule = config.init();
    rates(&mut schedule, 30);
    let record = schedule.to_record::<NdArray>();
    let mut resumed = config.init().load_record::<NdArray>(record);
    let (left, right) = (rates(&mut schedule, 70), rates(&mut resumed, 70));
    println!("{} {} values", left == right, left.len());
    // ANCHOR_END: record

    twin("triangle");
    // ANCHOR: triangle
    let mut triangle = Triangle {
        steps: 0,
        low: 0.1,
        high: 0.5,
        flank: 4,
    };
    println!("{:.2?}", rates(&mut triangle, 10));
    let record = triangle.to_record::<NdArray>();
    assert_eq!(triangle.load_record::<NdArray>(record).steps, 10);
    // ANCHOR_END: triangle
}
