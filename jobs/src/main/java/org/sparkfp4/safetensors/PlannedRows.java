package org.sparkfp4.safetensors;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.AmaxFile;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.SourceFile;
import org.sparkfp4.plan.Unit;

/** Rows of a plan's output shards: a partition a shard, a row a slab of a unit. */
final class PlannedRows implements RowPlanner {
  private static final int MAX_MEMBERS = 3;

  private final String planPath;
  private final List<Integer> shards;
  private final boolean cutOnly;
  private final String amaxPath;

  PlannedRows(String planPath, List<Integer> shards, boolean cutOnly, String amaxPath) {
    this.planPath = planPath;
    this.shards = shards;
    this.cutOnly = cutOnly;
    this.amaxPath = amaxPath;
  }

  @Override
  public List<SlabPartition> partitions(Configuration configuration, Predicate<String> names, boolean payload)
      throws IOException {
    QuantizationPlan plan = PlanFile.read(configuration, new Path(planPath));
    Map<Integer, Float> amax = amaxPath == null ? null : AmaxFile.read(configuration, new Path(amaxPath));
    Map<String, SourceFile> sources = new HashMap<>();
    plan.sources().forEach(source -> sources.put(source.name(), source));

    List<Integer> wanted = shards.isEmpty() ? IntStream.range(0, plan.shards().size()).boxed().toList() : shards;
    List<SlabPartition> partitions = new ArrayList<>();
    for (int shard : wanted) {
      if (shard < 0 || shard >= plan.shards().size()) {
        throw new IllegalArgumentException(
            "Invalid option shards: " + shard + "; plan " + planPath + " has " + plan.shards().size() + " shards");
      }

      PartitionFiles files = new PartitionFiles(new Path(plan.input()), sources);
      List<SourceRow> rows = new ArrayList<>();
      for (Unit unit : plan.shards().get(shard).units()) {
        boolean cut = unit.isCut(plan.slabBytes());
        if ((cut || !cutOnly) && names.test(unit.name())) {
          Float known = cut && amax != null ? knownAmax(amax, unit) : null;
          for (Slab slab : unit.slabs(plan.slabBytes())) {
            rows.add(row(unit, slab, known, files));
          }
        }
      }

      partitions.add(new SlabPartition(files.list(), rows));
    }

    return partitions;
  }

  private Float knownAmax(Map<Integer, Float> amax, Unit unit) throws IOException {
    Float known = amax.get(unit.id());
    if (known == null) {
      throw new IOException(
          "Invalid amax file " + amaxPath + ": it lacks unit " + unit.id() + " (" + unit.name() + "), which is cut");
    }

    return known;
  }

  private static SourceRow row(Unit unit, Slab slab, Float amax, PartitionFiles files) throws IOException {
    ByteRange[] data = new ByteRange[MAX_MEMBERS];
    if (slab.isWhole()) {
      for (int m = 0; m < unit.members().size(); m++) {
        LocatedTensor weight = unit.members().get(m).weight();
        data[m] = range(files, weight, weight.offset(), weight.length());
      }
    } else {
      LocatedTensor weight = unit.members().get(slab.member()).weight();
      data[0] = range(
          files, weight, weight.offset() + slab.rowOffset() * unit.rowBytes(), slab.rows() * unit.rowBytes());
    }

    return SourceRow.of(
        unit.id(), slab.index(), unit.name(), unit.dtype().name(), unit.cols(), amax, data[0], data[1], data[2]);
  }

  private static ByteRange range(PartitionFiles files, LocatedTensor weight, long offset, long length)
      throws IOException {
    if (length > ByteRange.MAX_LENGTH) {
      throw new IOException(
          "Cannot read tensor " + weight.name() + " of " + weight.file() + ": a slab of it has " + length
              + " bytes, and a payload holds at most " + ByteRange.MAX_LENGTH + "; plan with smaller slabs");
    }

    return new ByteRange(files.number(weight), offset, length);
  }
}
