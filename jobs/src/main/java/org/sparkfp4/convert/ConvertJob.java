package org.sparkfp4.convert;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.files.FreeSpace;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.SourceChecksums;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingJob;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.RunProgress;
import org.sparkfp4.progress.Work;

/** Carries a conversion out: parts of files that are put together, files, then what stands beside them. */
public final class ConvertJob {
  private static final Logger LOG = LoggerFactory.getLogger(ConvertJob.class);

  private final SparkSession spark;
  private final Configuration conf;
  private final ConvertFolder folder;
  private final Checkpoint source;
  private final SourceModel model;
  private final ConvertPlan plan;
  private final String commit;
  private final KernelChoice kernels;
  private final String producer;

  private ConvertJob(SparkSession spark, OutputFolder output, Checkpoint source, SourceModel model, ConvertPlan plan,
      String commit, KernelChoice kernels, String producer) {
    this.spark = spark;
    this.conf = spark.sessionState().newHadoopConf();
    this.folder = new ConvertFolder(output);
    this.source = source;
    this.model = model;
    this.plan = plan;
    this.commit = commit;
    this.kernels = kernels;
    this.producer = producer;
  }

  /**
   * Plans a conversion.
   *
   * @param source an NVFP4 checkpoint in any layout
   * @param request what it is to become
   * @param commit how files get their names
   * @param kernels that arrange experts; a GPU only where it is asked for by name, since bytes that are moved once are not
   *     worth the way to it
   * @param producer the product's name and version
   * @throws IllegalArgumentException if the source is in no known layout, or the target does not take it
   */
  public static ConvertJob plan(SparkSession spark, Checkpoint source, ConvertRequest request, OutputFolder output,
      String commit, KernelChoice kernels, String producer) throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    SourceModel model = SourceModel.of(conf, source);
    // looked at here for its faults: it is taken over when all weights are written
    QuantConfig.read(conf, source);
    ConvertPlan plan = request.planner(model, conf)
        .plan(source.path().toString(), source.sourceFiles(), source.tensors());
    return new ConvertJob(spark, output, source, model, plan, commit, kernelsFor(kernels), producer);
  }

  /** Which kernels arrange experts where a run asks for {@code choice}. */
  public static KernelChoice kernelsFor(KernelChoice choice) {
    return choice.device() == Device.CUDA ? choice : KernelChoice.cpu(choice.tier());
  }

  /** The same job, whose output is known by another name: that of a plan which makes its source too. */
  ConvertJob named(String fingerprint) {
    ConvertPlan renamed = new ConvertPlan(fingerprint, plan.input(), plan.target(), plan.sources(), plan.files());
    return new ConvertJob(spark, folder.output(), source, model, renamed, commit, kernels, producer);
  }

  /** What the run makes, for people. */
  public String summary() {
    return ConvertSummary.planned(plan);
  }

  /**
   * Refuses an output that holds what is somebody else's, or of another plan where that is not to be replaced.
   *
   * @throws IOException naming the folder and what is in it
   */
  public void requireOutput(boolean overwrite) throws IOException {
    folder.requireFor(plan.fingerprint(), plan.target(), overwrite);
  }

  /**
   * Finishes the checkpoint; in a folder that was finished already nothing is done.
   *
   * @param overwrite whether what another plan left may be replaced
   * @param view of the progress; closed when all is written
   * @return what could not be kept, in words
   */
  public String run(boolean overwrite, ProgressView view) throws IOException {
    requireOutput(overwrite);
    if (folder.isComplete(plan.fingerprint())) {
      LOG.info("{} is complete: nothing to do", folder.output().path());
      return kept(folder.finished(plan));
    }

    requireSpace(overwrite);
    OutputFolder output = folder.output();
    try (OutputLock lock = OutputLock.acquire(output.fs(), output.staging().lock())) {
      if (!overwrite) {
        folder.requireSame(plan.fingerprint(), plan.target());
      }

      folder.begin(plan.fingerprint(), plan.input(), plan.target(), overwrite);
      return finish(lock, null, view);
    }
  }

  /**
   * Writes what is missing and publishes it, in a folder that is made ready and locked.
   *
   * @param origin where the manifest says that it comes from; null for the job's own source
   * @param view of the progress; closed when all is written
   */
  String finish(OutputLock lock, Provenance origin, ProgressView view) throws IOException {
    writeMissing(view);
    Map<Integer, ShardRecord> records = folder.finished(plan);
    ConvertPublisher publisher = new ConvertPublisher(folder, source, model, plan, producer);
    publisher.publish(records, origin == null ? provenance(records) : origin, lock, conf);
    folder.output().staging().remove();
    return ConvertSummary.kept(publisher.rounded(records));
  }

  private String kept(Map<Integer, ShardRecord> records) {
    return ConvertSummary.kept(new ConvertPublisher(folder, source, model, plan, producer).rounded(records));
  }

  private Provenance provenance(Map<Integer, ShardRecord> records) throws IOException {
    Manifest manifest = new OutputFolder(source.path().getFileSystem(conf), source.path()).manifest();
    PlanOptions asStored = new PlanOptions(plan.target(), "as-stored", "as-stored", model.isWeightOnly(), 0);
    boolean isKnown = manifest != null && manifest.options() != null;
    return new Provenance(
        plan.input(),
        manifest == null || manifest.family() == null ? "" : manifest.family(),
        isKnown ? manifest.options().withLayout(plan.target()) : asStored,
        plan.sources(),
        new SourceChecksums(spark, plan.input(), plan.sources()).find(List.copyOf(records.values())).checksums(),
        List.of(),
        null);
  }

  /** Parts stand beside the file that is made of them until the end. */
  private void requireSpace(boolean overwrite) throws IOException {
    long there = overwrite
        ? folder.output().shardBytes()
        : folder.finished(plan).values().stream().mapToLong(ShardRecord::length).sum();
    FreeSpace.require(
        folder.output().fs(), folder.output().path(), Math.max(0, plan.dataBytes() + plan.partBytes() - there));
  }

  private void writeMissing(ProgressView view) throws IOException {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<ConvertPlan> planned = context.broadcast(plan);
    Broadcast<SerializableConfiguration> configuration = context.broadcast(new SerializableConfiguration(conf));
    TaskOutput output = TaskOutput.ofNewRun(folder.output().path(), commit);
    WritingJob tasks = new WritingJob(spark.sparkContext(), "convert", plan.fingerprint());
    try {
      Map<Integer, ShardRecord> finished = folder.finished(plan);
      List<Integer> files = missing(false, finished);
      List<Integer> assembled = missing(true, finished);
      List<Integer> parts = assembled.stream()
          .flatMap(file -> plan.parts(file).stream())
          .map(ConvertPlan.Part::record)
          .filter(part -> !finished.containsKey(part))
          .toList();
      if (!finished.isEmpty()) {
        LOG.info("Resuming: {} files and {} parts are to be written", files.size() + assembled.size(), parts.size());
      }

      List<Long> bytes = plan.recordBytes();
      List<Integer> records = Stream.of(parts, files, assembled).flatMap(List::stream).toList();
      try (RunProgress progress = new RunProgress(
          view, Work.FILES_WRITTEN, records.size(), records.stream().mapToLong(bytes::get).sum())) {
        progress.show();
        IntConsumer ended = record -> progress.finished(bytes.get(record));
        tasks.run(parts, new PartTask(planned, configuration, output, kernels), ended, "parts");
        tasks.run(files, new FileTask(planned, configuration, output, kernels), ended, "files");
        tasks.run(assembled, new AssemblyTask(planned, configuration, output, kernels), ended, "put parts together");
      }
    } finally {
      planned.destroy();
      configuration.destroy();
    }
  }

  private List<Integer> missing(boolean byParts, Map<Integer, ShardRecord> finished) {
    return IntStream.range(0, plan.files().size()).boxed()
        .filter(file -> plan.files().get(file).byParts() == byParts && !finished.containsKey(file))
        .toList();
  }
}
