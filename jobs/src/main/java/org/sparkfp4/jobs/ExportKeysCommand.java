package org.sparkfp4.jobs;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.keys.CacheExport;
import org.sparkfp4.keys.CachedKeys;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code export-keys}: a cache of one request as the files that a runtime looks for. */
@Command(
    name = "export-keys",
    description = "Experimental: writes the cache of one request, whose token t is in slot t, as files that a runtime "
        + "looks for.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class ExportKeysCommand implements Callable<Integer> {
  private static final String TOKENS = "token_ids";

  /** What runtimes look for. */
  enum Format { SGLANG, VLLM }

  @Option(names = "--cache", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the cache.")
  private String cache;

  @Option(names = "--tokens", required = true, paramLabel = "FILE", converter = FolderText.class,
      description = "A safetensors file with token_ids, I64 or I32: the request's tokens.")
  private String tokens;

  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the files, which the runtime is given.")
  private String output;

  @Option(names = "--format", required = true, paramLabel = "NAME",
      description = "sglang (HiCache's file for each page) or vllm (ExampleConnector's file for each layer).")
  private Format format;

  @Option(names = "--model", defaultValue = "model", paramLabel = "NAME",
      description = "sglang: the name that the model is served under (default: ${DEFAULT-VALUE}).")
  private String model;

  @Option(names = "--layer-ending", defaultValue = ".k_cache", paramLabel = "TEXT",
      description = "vllm: what the runtime puts behind a layer's name (default: ${DEFAULT-VALUE}).")
  private String layerEnding;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    Configuration conf = SparkConfiguration.hadoop();
    SeparateFolders.require(RawFileSystem.qualified(conf, cache), RawFileSystem.qualified(conf, output));
    CacheExport export =
        new CacheExport(conf, CachedKeys.layers(conf, cache), tokenIds(conf), new Path(output));
    int files = format == Format.SGLANG ? export.sglang(model) : export.vllm(layerEnding);
    spec.commandLine().getOut().printf("%s: %d files (experimental)%n", output, files);
    spec.commandLine().getOut().flush();
    return CommandLine.ExitCode.OK;
  }

  private long[] tokenIds(Configuration conf) throws IOException {
    Path path = new Path(tokens);
    FileSystem fs = RawFileSystem.of(path, conf);
    SafetensorsHeader header = SafetensorsHeader.read(fs, path);
    List<TensorInfo> found = header.tensors().stream().filter(tensor -> tensor.name().equals(TOKENS)).toList();
    if (found.isEmpty() || found.get(0).dtype() != DType.I64 && found.get(0).dtype() != DType.I32) {
      throw new JobException("Invalid tokens: " + tokens + " has no tensor token_ids of I64 or I32");
    }

    TensorInfo ids = found.get(0);
    byte[] bytes = new byte[Math.toIntExact(ids.length())];
    try (InputStream in = fs.open(path); DataInputStream data = new DataInputStream(in)) {
      data.skipNBytes(header.dataStart() + ids.begin());
      data.readFully(bytes);
    }

    ByteBuffer values = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    long[] all = new long[bytes.length * 8 / ids.dtype().bits()];
    for (int i = 0; i < all.length; i++) {
      all[i] = ids.dtype() == DType.I64 ? values.getLong() : values.getInt();
    }

    return all;
  }
}
