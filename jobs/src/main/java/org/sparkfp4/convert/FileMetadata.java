package org.sparkfp4.convert;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * The {@code __metadata__} of an output's file: the layout's name, a {@link StackDescription} of each layer whose experts
 * are stacked, and the bits of each scalar that the file has in another form than it was made in.
 */
final class FileMetadata {
  private static final String LAYOUT = "sparkfp4.layout";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final SourceBytes source;
  private final Map<String, String> metadata = new TreeMap<>(SafetensorsHeader.FORMAT_PT);

  private FileMetadata(SourceBytes source, String layout) {
    this.source = source;
    metadata.put(LAYOUT, layout);
  }

  /** That of a file with these items; scalars of the source are read for it. */
  static Map<String, String> of(List<ConvertItem> items, String layout, SourceBytes source) throws IOException {
    FileMetadata all = new FileMetadata(source, layout);
    for (ConvertItem item : items) {
      all.add(item);
    }

    return all.metadata;
  }

  /** A file's metadata as it waits behind a part's bytes. */
  static byte[] json(Map<String, String> metadata) throws IOException {
    return JSON.writeValueAsBytes(metadata);
  }

  /** Reads {@link #json}. */
  static Map<String, String> parse(byte[] json) throws IOException {
    return JSON.readValue(json, new TypeReference<>() {});
  }

  private void add(ConvertItem item) throws IOException {
    if (item instanceof ConvertItem.Linears linears) {
      Scalars scalars = source.scalars(linears.sources());
      for (QuantizedLinear linear : linears.sources()) {
        add(linears.form(), linear.module(), scalars.global(linear), scalars.input(linear));
      }
    } else if (item instanceof ConvertItem.Expert expert) {
      ExpertLayer layer = expert.layer();
      ExpertReader reader = ExpertReader.of(layer, source);
      for (int p = 0; p < layer.projections().size(); p++) {
        add(expert.form(), layer.module(expert.expert(), p), reader.global(expert.expert(), p),
            reader.input(expert.expert(), p));
      }
    } else if (item instanceof ConvertItem.Layer layer) {
      LayerScales scales = LayerScales.read(layer.layer(), ExpertReader.of(layer.layer(), source));
      metadata.put(StackDescription.KEY + layer.layer().path(),
          scales.describe(layer.layout(), layer.outputs().stream().map(TensorInfo::name).toList()).json());
    }
  }

  private void add(ModuleForm form, String module, GlobalScale global, GlobalScale input) {
    ModuleForm other = form == ModuleForm.MODELOPT ? ModuleForm.COMPRESSED_TENSORS : ModuleForm.MODELOPT;
    if (global.reciprocal() != form.reciprocal()) {
      metadata.put(GlobalScale.KEY + other.global(module), global.text());
    }

    if (input != null && input.reciprocal() != form.reciprocal()) {
      metadata.put(GlobalScale.KEY + other.input(module), input.text());
    }
  }
}
