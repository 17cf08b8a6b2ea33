package org.sparkfp4.calibration;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function2;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;
import scala.Tuple2;

/** Writes the file of a partition's entries. It holds their sums: those of a file, which are few hundred megabytes. */
final class StatisticsShard
    implements Function2<Integer, Iterator<Tuple2<EntryBand, Partial>>, Iterator<ShardOutcome>> {
  private static final long serialVersionUID = 1L;

  private final Broadcast<CalibrationPlan> plan;
  private final Broadcast<SerializableConfiguration> conf;
  private final TaskOutput output;

  StatisticsShard(
      Broadcast<CalibrationPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output) {
    this.plan = plan;
    this.conf = conf;
    this.output = output;
  }

  static String file(int shard, int shards) {
    return String.format("statistics-%05d-of-%05d.safetensors", shard + 1, shards);
  }

  @Override
  public Iterator<ShardOutcome> call(Integer shard, Iterator<Tuple2<EntryBand, Partial>> partials)
      throws IOException {
    List<StatisticsEntry> entries = plan.value().entries();
    Map<Integer, EntrySums> sums = new TreeMap<>();
    for (int i = 0; i < entries.size(); i++) {
      if (entries.get(i).shard() == shard) {
        sums.put(i, new EntrySums(entries.get(i)));
      }
    }

    List<String> refusals = new ArrayList<>();
    while (partials.hasNext()) {
      Tuple2<EntryBand, Partial> partial = partials.next();
      if (partial._2() instanceof BandSums band) {
        sums.get(partial._1().entry()).add(band);
      } else if (partial._2() instanceof Partial.Refused refused) {
        refusals.add(refused.reason());
      }
    }

    ShardOutcome outcome =
        refusals.isEmpty()
            ? write(shard, List.copyOf(sums.values()))
            : new ShardOutcome(null, 0, null, List.of(), refusals);
    return List.of(outcome).iterator();
  }

  private ShardOutcome write(int shard, List<EntrySums> sums) throws IOException {
    String name = file(shard, plan.value().shards());
    HessianKind hessian = plan.value().hessian();
    List<EntryTensors> all = sums.stream().map(entry -> new EntryTensors(entry, hessian)).toList();
    List<TensorInfo> infos = new ArrayList<>();
    for (EntryTensors entry : all) {
      infos.addAll(entry.layout().wide(EntryLayout.end(infos)));
    }

    for (EntryTensors entry : all) {
      infos.addAll(entry.layout().narrow(EntryLayout.end(infos)));
    }

    TaskFiles files = new TaskFiles(output, conf.value().value(), TaskContext.get().taskAttemptId());
    try (StagedFile file = files.begin(shard, name)) {
      file.write(ByteBuffer.wrap(SafetensorsHeader.encode(infos, SafetensorsHeader.FORMAT_PT)));
      for (EntryTensors entry : all) {
        entry.writeWide(file);
      }

      for (EntryTensors entry : all) {
        entry.writeNarrow(file);
      }

      String sha256 = file.finish();
      List<ModuleStatistics> modules =
          sums.stream().map(entry -> ModuleStatistics.of(entry, name, hessian)).toList();
      return new ShardOutcome(name, file.length(), sha256, modules, List.of());
    }
  }
}
