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
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.gptq.LayerInputs;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.PlannedImportance;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Finds in a folder of statistics what the errors of each unit of a plan are weighed by, from headers alone. */
public final class ImportanceFinder {
  /** GPTQ makes up for what few tokens happen to have in common, unless there are so many times K of them. */
  private static final int TOKENS_OF_K = 4;

  private final Configuration conf;
  private final Path folder;
  private final Weighting weighting;
  private final boolean full;
  private final Map<String, ModuleStatistics> modules = new HashMap<>();
  private final Map<String, Map<String, LocatedTensor>> tensors = new HashMap<>();
  private final List<SourceFile> files = new ArrayList<>();

  /**
   * @param folder the folder of the statistics, a qualified path
   * @param index what is in it
   * @param full whether layers that saw four times as many tokens as they have columns get all of their Hessian, for
   *     GPTQ
   */
  public ImportanceFinder(
      Configuration conf, Path folder, StatisticsIndex index, Weighting weighting, boolean full) {
    this.conf = conf;
    this.folder = folder;
    this.weighting = weighting;
    this.full = full;
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
      if (module != null && first != null && !module.sameAs(first)) {
        throw new IllegalArgumentException("Invalid statistics " + folder + ": " + first.module() + " and "
            + module.module() + " have one input, but statistics of different ones; calibrate anew");
      }

      first = first == null ? module : first;
    }

    return first == null || first.tokens() == 0 ? null : first;
  }

  private LocatedTensor tensor(Unit unit, ModuleStatistics module) throws IOException {
    if (module.cols() != unit.cols()) {
      throw new IllegalArgumentException("Invalid statistics " + folder + " of " + module.module() + ": K "
          + module.cols() + ", but the layer has K " + unit.cols() + "; calibrate on this model");
    }

    boolean isMxfp4 = SourceScheme.parse(unit.scheme()).isMxfp4();
    if (full && !isMxfp4 && module.tokens() - module.heldOutTokens() >= TOKENS_OF_K * unit.cols()) {
      return hessians(unit, module);
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

  /** Both Hessians as one tensor: the one lies behind the other. */
  private LocatedTensor hessians(Unit unit, ModuleStatistics module) throws IOException {
    String name = Statistics.tensor(module.module(), "hessian");
    LocatedTensor own = tensors(module.file()).get(name);
    LocatedTensor heldOut = tensors(module.file()).get(Statistics.tensor(module.module(), "hessian_held_out"));
    if (own == null || heldOut == null) {
      throw new IllegalArgumentException("Cannot quantize " + unit.name() + " by GPTQ: " + folder + "/" + module.file()
          + " has no " + name + "; calibrate with --hessian full, or choose --scale-search weighted");
    }

    List<Long> shape = List.of(unit.cols(), unit.cols());
    boolean right = own.dtype() == DType.F32 && heldOut.dtype() == DType.F32 && own.shape().equals(shape)
        && heldOut.shape().equals(shape) && heldOut.offset() == own.offset() + own.length();
    if (!right) {
      throw new IllegalArgumentException("Invalid statistics " + folder + "/" + module.file() + ": " + name + " and "
          + heldOut.name() + " must be F32 " + shape + ", one behind the other; calibrate anew");
    }

    if (LayerInputs.bytes(unit.cols()) > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("Cannot quantize " + unit.name() + " by GPTQ: Hessians of K " + unit.cols()
          + " have " + LayerInputs.bytes(unit.cols()) + " bytes, more than a row holds; exclude it, or choose "
          + "--scale-search weighted");
    }

    return new LocatedTensor(
        name, DType.F32, List.of(2L, unit.cols(), unit.cols()), own.file(), own.offset(), 2 * own.length());
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
