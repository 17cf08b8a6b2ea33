package org.sparkfp4.source;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.AmaxFile;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.PlannedImportance;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardSelection;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;

/** Rows of a plan's output shards: a partition a shard, a row a slab of a unit. */
final class PlannedRows implements RowPlanner {
  private final String planPath;
  private final String shards;
  private final boolean cutOnly;
  private final String amaxPath;

  PlannedRows(String planPath, String shards, boolean cutOnly, String amaxPath) {
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
    PlannedFolder source = new PlannedFolder(plan.input(), plan.sources());
    PlannedImportance known = plan.importance();
    PlannedFolder statistics = known == null ? null : new PlannedFolder(known.folder(), known.files());
    List<SlabPartition> partitions = new ArrayList<>();
    for (int shard : ShardSelection.parse(shards, plan.shards().size()).indices()) {
      PartitionFiles files = new PartitionFiles();
      List<SourceRow> rows = new ArrayList<>();
      for (Unit unit : plan.shards().get(shard).units()) {
        boolean cut = unit.isCut(plan.slabBytes());
        if ((cut || !cutOnly) && names.test(unit.name())) {
          boolean asked = amax != null && (cut || amax.containsKey(unit.id()));
          Float unitAmax = asked ? knownAmax(amax, unit) : null;
          LocatedTensor tensor = known == null ? null : known.tensors().get(unit.id());
          ByteRange importance = tensor == null ? null : range(files, statistics, tensor, 0, tensor.length());
          for (Slab slab : unit.slabs(plan.slabBytes())) {
            rows.add(row(unit, slab, unitAmax, files, source, importance));
          }
        }
      }

      partitions.add(new SlabPartition(files.list(), rows));
    }

    return partitions;
  }

  private Float knownAmax(Map<Integer, Float> amax, Unit unit) throws IOException {
    if (!amax.containsKey(unit.id())) {
      throw new IOException(
          "Invalid amax file " + amaxPath + ": it lacks unit " + unit.id() + " (" + unit.name() + "), which is cut");
    }

    float known = amax.get(unit.id());
    // the unit has a NaN or an infinity: without an amax the function looks at every weight and says where
    return Float.isNaN(known) ? null : known;
  }

  private static SourceRow row(
      Unit unit, Slab slab, Float amax, PartitionFiles files, PlannedFolder source, ByteRange importance)
      throws IOException {
    ByteRange[] data = new ByteRange[Unit.MAX_MEMBERS];
    ByteRange[] scales = new ByteRange[Unit.MAX_MEMBERS];
    if (slab.isWhole()) {
      for (int m = 0; m < unit.members().size(); m++) {
        LocatedTensor weight = unit.members().get(m).weight();
        LocatedTensor scale = unit.members().get(m).scale();
        data[m] = rows(files, source, weight, 0, weight.rows(), weight.length());
        scales[m] = scale == null ? null : range(files, source, scale, 0, scale.length());
      }
    } else {
      Member member = unit.members().get(slab.member());
      data[0] = rows(
          files, source, member.weight(), slab.rowOffset(), slab.rows(), unit.dataBytes(slab.rows()));
      scales[0] = member.scale() == null
          ? null
          : range(files, source, member.scale(), unit.scaleOffset(slab.rowOffset()), unit.scaleBytes(slab.rows()));
    }

    return SourceRow.of(
        unit.id(), slab.index(), unit.name(), unit.scheme(), unit.cols(), amax, data[0], data[1], data[2], scales[0],
        scales[1], scales[2], importance, null);
  }

  /** Rows of a weight, of which {@code length} bytes; of a stack of matrices, all rows of some of them. */
  private static ByteRange rows(
      PartitionFiles files, PlannedFolder source, LocatedTensor weight, long first, long rows, long length)
      throws IOException {
    if (weight.strides().isEmpty()) {
      return range(files, source, weight, weight.length() / weight.rows() * first, length);
    }

    List<Long> shape = new ArrayList<>(weight.shape());
    long rowsOfOuter = weight.rows() / shape.get(0);
    shape.set(0, rows / rowsOfOuter);
    long elements = rows * weight.cols();
    Gather gather = new Gather(shape, weight.strides(), Math.toIntExact(length / elements));
    requireReadable(weight, Math.max(length, gather.span()));
    long begin = first / rowsOfOuter * weight.strides().get(0);
    return new ByteRange(files.number(source, weight), weight.offset() + begin, length, gather);
  }

  /** Part of a tensor; {@code begin} counts from its first byte. */
  private static ByteRange range(
      PartitionFiles files, PlannedFolder folder, LocatedTensor tensor, long begin, long length) throws IOException {
    requireReadable(tensor, length);
    return new ByteRange(files.number(folder, tensor), tensor.offset() + begin, length);
  }

  private static void requireReadable(LocatedTensor tensor, long length) throws IOException {
    if (length > ByteRange.MAX_LENGTH) {
      throw new IOException(
          "Cannot read tensor " + tensor.name() + " of " + tensor.file() + ": a slab of it has " + length
              + " bytes, and a payload holds at most " + ByteRange.MAX_LENGTH + "; plan with smaller slabs");
    }
  }
}
