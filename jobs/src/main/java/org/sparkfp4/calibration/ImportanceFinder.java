package org.sparkfp4.calibration;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.PlannedImportance;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.SourceFile;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.ChildPath;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Finds in a folder of statistics what the errors of each unit of a plan are weighed by, from headers alone. */
public final class ImportanceFinder {
  private final Configuration conf;
  private final Path folder;
  private final Weighting weighting;
  private final Map<String, ModuleStatistics> modules = new HashMap<>();
  private final Map<String, Map<String, LocatedTensor>> tensors = new HashMap<>();
  private final List<SourceFile> files = new ArrayList<>();

  /**
   * @param folder the folder of the statistics, a qualified path
   * @param index what is in it
   */
  public ImportanceFinder(Configuration conf, Path folder, StatisticsIndex index, Weighting weighting) {
    this.conf = conf;
    this.folder = folder;
    this.weighting = weighting;
    index.modules().forEach(module -> modules.put(module.module(), module));
  }

  /**
   * What the plan's units are weighed by. Units whose layers have no statistics, or saw no token, have none.
   *
   * @throws IllegalArgumentException naming a module whose statistics are not of its K, are not those of another layer
   *     of the same input, or lack what is asked for
   */
  public PlannedImportance find(QuantizationPlan plan) throws IOException {
    Map<Integer, LocatedTensor> found = new HashMap<>();
    for (Unit unit : plan.shards().stream().flatMap(shard -> shard.units().stream()).toList()) {
      ModuleStatistics module = statistics(unit);
      if (module != null) {
        found.put(unit.id(), tensor(unit, module));
      }
    }

    return new PlannedImportance(folder.toString(), files, found);
  }

  /** The statistics of the first layer that has some: the layers of a unit have one input. */
  private ModuleStatistics statistics(Unit unit) {
    ModuleStatistics first = null;
    for (Member member : unit.members()) {
      ModuleStatistics module = modules.get(member.module());
      if (module != null && first != null && !isOfSameInput(module, first)) {
        throw new IllegalArgumentException("Invalid statistics " + folder + ": " + first.module() + " and "
            + module.module() + " have one input, but statistics of different ones; calibrate anew");
      }

      first = first == null ? module : first;
    }

    return first == null || first.tokens() == 0 ? null : first;
  }

  private static boolean isOfSameInput(ModuleStatistics a, ModuleStatistics b) {
    return a.cols() == b.cols() && a.tokens() == b.tokens() && a.heldOutTokens() == b.heldOutTokens()
        && a.amax() == b.amax() && a.percentile() == b.percentile() && a.headroom() == b.headroom();
  }

  private LocatedTensor tensor(Unit unit, ModuleStatistics module) throws IOException {
    if (module.cols() != unit.cols()) {
      throw new IllegalArgumentException("Invalid statistics " + folder + " of " + module.module() + ": K "
          + module.cols() + ", but the layer has K " + unit.cols() + "; calibrate on this model");
    }

    boolean diagonal = weighting == Weighting.DIAGONAL;
    String name = Statistics.tensor(module.module(), diagonal ? "mean_square" : "local_hessian");
    LocatedTensor tensor = tensors(module.file()).get(name);
    if (tensor == null) {
      throw new IllegalArgumentException("Cannot weigh errors of " + module.module() + " by "
          + (diagonal ? "mean squares" : "local Hessians") + ": " + folder + "/" + module.file() + " has no " + name
          + (diagonal ? "; calibrate anew" : "; calibrate with --hessian local, or choose --weighting diagonal"));
    }

    if (tensor.dtype() != DType.F32 || tensor.length() != Float.BYTES * weighting.values(unit.cols())) {
      throw new IllegalArgumentException("Invalid statistics " + folder + "/" + module.file() + ": " + name + " is "
          + tensor.dtype() + " " + tensor.shape() + ", must be F32 of " + weighting.values(unit.cols())
          + " values; calibrate anew");
    }

    return tensor;
  }

  private Map<String, LocatedTensor> tensors(String file) throws IOException {
    Map<String, LocatedTensor> known = tensors.get(file);
    if (known != null) {
      return known;
    }

    Path path = ChildPath.of(folder, file);
    FileSystem fileSystem = RawFileSystem.of(path, conf);
    FileStatus status = fileSystem.getFileStatus(path);
    SafetensorsHeader header = SafetensorsHeader.read(fileSystem, status);
    Map<String, LocatedTensor> located = new HashMap<>();
    for (TensorInfo tensor : header.tensors()) {
      located.put(tensor.name(), new LocatedTensor(
          tensor.name(), tensor.dtype(), tensor.shape(), file, header.dataStart() + tensor.begin(), tensor.length()));
    }

    files.add(new SourceFile(file, status.getLen(), status.getModificationTime()));
    tensors.put(file, located);
    return located;
  }
}
