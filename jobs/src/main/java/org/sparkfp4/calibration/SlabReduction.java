package org.sparkfp4.calibration;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Queue;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.PairFlatMapFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Row;
import org.apache.spark.util.SerializableConfiguration;
import scala.Tuple2;

/**
 * Reduces a partition to sums, of one band of each input that has it. An input's slabs follow one another, so that a
 * task holds the sums of one input at a time.
 */
final class SlabReduction implements PairFlatMapFunction<Iterator<Row>, EntryBand, Partial> {
  private static final long serialVersionUID = 1L;

  private final Broadcast<CalibrationPlan> plan;
  private final Broadcast<SerializableConfiguration> conf;
  private final int band;
  private final String tier;

  /** @param tier of the processor's kernels, as {@link HessianWorkspace} takes it */
  SlabReduction(Broadcast<CalibrationPlan> plan, Broadcast<SerializableConfiguration> conf, int band, String tier) {
    this.plan = plan;
    this.conf = conf;
    this.band = band;
    this.tier = tier;
  }

  @Override
  public Iterator<Tuple2<EntryBand, Partial>> call(Iterator<Row> rows) {
    HessianWorkspace workspace =
        plan.value().hessian() == HessianKind.FULL ? HessianWorkspace.open(TaskContext.get(), tier) : null;
    return new Sums(rows, plan.value(), conf.value().value(), band, workspace);
  }

  private static final class Sums implements Iterator<Tuple2<EntryBand, Partial>> {
    private final Iterator<Row> rows;
    private final CalibrationPlan plan;
    private final Configuration conf;
    private final int band;
    private final HessianWorkspace workspace;
    private final Queue<Tuple2<EntryBand, Partial>> ready = new ArrayDeque<>();
    private ModuleSums current;

    Sums(Iterator<Row> rows, CalibrationPlan plan, Configuration conf, int band, HessianWorkspace workspace) {
      this.rows = rows;
      this.plan = plan;
      this.conf = conf;
      this.band = band;
      this.workspace = workspace;
    }

    @Override
    public boolean hasNext() {
      if (ready.isEmpty()) {
        try (RoutingReader routing = new RoutingReader(conf)) {
          read(routing);
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }

      return !ready.isEmpty();
    }

    /** Reads until an input has ended. */
    private void read(RoutingReader routing) throws IOException {
      while (ready.isEmpty() && rows.hasNext()) {
        ActivationSlab slab = ActivationSlab.of(rows.next());
        InputModule input = plan.inputs().get(slab.module());
        if (input == null || slab.tokens() == 0) {
          continue;
        }

        if (current == null || current.input() != input) {
          finish();
          current = band < plan.bands().count(input) ? new ModuleSums(plan, input, band, workspace) : null;
        }

        if (current != null && !current.isRefused()) {
          current.add(slab, routing);
        }
      }

      if (ready.isEmpty()) {
        finish();
      }
    }

    private void finish() {
      ready.addAll(current == null ? Collections.emptyList() : current.finish());
      current = null;
    }

    @Override
    public Tuple2<EntryBand, Partial> next() {
      if (!hasNext()) {
        throw new NoSuchElementException("No more sums");
      }

      return ready.remove();
    }
  }
}
