package org.sparkfp4.calibration;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import scala.Tuple2;

/** The sums of one input's band while its tokens are read; of experts, one for each that a token went to. */
final class ModuleSums {
  /** The largest magnitude whose square a float holds, as the means of squares are stored. */
  private static final double LARGEST = Math.sqrt(Float.MAX_VALUE);

  private final CalibrationPlan plan;
  private final HessianWorkspace workspace;
  private final InputModule input;
  private final int band;
  private final int first;
  private final int width;
  private final Map<Integer, BandSums> sums = new TreeMap<>();
  private final double[] x;
  private Partial.Refused refused;

  /** @param workspace of full Hessians' sums; null for the other kinds */
  ModuleSums(CalibrationPlan plan, InputModule input, int band, HessianWorkspace workspace) {
    int all = plan.bands().width(input);
    this.plan = plan;
    this.workspace = workspace;
    this.input = input;
    this.band = band;
    this.first = band * all;
    this.width = Math.min(all, input.cols() - first);
    this.x = new double[input.cols()];
  }

  InputModule input() {
    return input;
  }

  boolean isRefused() {
    return refused != null;
  }

  /** Adds a slab, whose columns are the input's. */
  void add(ActivationSlab slab, RoutingReader routing) throws IOException {
    long[][] experts = input.experts() == 0 ? null : experts(slab, routing);
    for (int token = 0; token < slab.tokens() && refused == null; token++) {
      slab.load(token, x);
      requireUsable(slab, token);
      if (refused == null && input.experts() == 0) {
        sums(0).add(slab.firstToken() + token, x);
      } else if (refused == null) {
        addRouted(slab, token, experts[token]);
      }
    }
  }

  private long[][] experts(ActivationSlab slab, RoutingReader reader) throws IOException {
    RoutingTensor routing = plan.routings().get(CalibrationPlan.routingKey(slab.file(), slab.module()));
    if (routing != null) {
      return reader.read(routing, slab.firstToken(), slab.tokens());
    }

    return new long[][] {slab.experts().stream().mapToLong(Number::longValue).toArray()};
  }

  private void addRouted(ActivationSlab slab, int token, long[] experts) {
    for (int i = 0; i < experts.length; i++) {
      if (experts[i] < 0 || experts[i] >= input.experts()) {
        refused = new Partial.Refused("Invalid routing: " + slab.describe(token) + " goes to expert " + experts[i]
            + ", must be 0 to " + (input.experts() - 1) + "; give the routing of this model");
        return;
      }

      for (int j = 0; j < i; j++) {
        if (experts[j] == experts[i]) {
          refused = new Partial.Refused("Invalid routing: " + slab.describe(token) + " goes to expert " + experts[i]
              + " twice; give each of its experts once");
          return;
        }
      }
    }

    for (long expert : experts) {
      sums(Math.toIntExact(expert)).add(slab.firstToken() + token, x);
    }
  }

  private BandSums sums(int expert) {
    return sums.computeIfAbsent(expert, key -> new BandSums(first, width, input.cols(), plan.hessian(), workspace));
  }

  private void requireUsable(ActivationSlab slab, int token) {
    for (int i = 0; i < x.length; i++) {
      if (!Double.isFinite(x[i])) {
        refused = new Partial.Refused("Invalid activation: " + x[i] + " at column " + i + " of " + slab.describe(token)
            + ", must be finite; mend the run that recorded it, or leave the module out");
        return;
      }

      if (Math.abs(x[i]) > LARGEST) {
        refused = new Partial.Refused("Invalid activation: " + x[i] + " at column " + i + " of " + slab.describe(token)
            + ", no F32 holds its square; mend the run that recorded it, or leave the module out");
        return;
      }
    }
  }

  /** What the tokens came to. */
  List<Tuple2<EntryBand, Partial>> finish() {
    List<Tuple2<EntryBand, Partial>> partials = new ArrayList<>();
    if (refused != null) {
      partials.add(new Tuple2<>(key(0), refused));
    } else {
      sums.forEach((expert, sum) -> partials.add(new Tuple2<>(key(expert), sum.finish())));
    }

    if (workspace != null) {
      workspace.memory().close();
    }

    return partials;
  }

  private EntryBand key(int expert) {
    int entry = input.firstEntry() + expert;
    return new EntryBand(entry, band, plan.entries().get(entry).shard());
  }
}
