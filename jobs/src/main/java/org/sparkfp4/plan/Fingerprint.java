package org.sparkfp4.plan;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.Sha256;

/** Tells plans apart whose outputs may differ in a byte. */
final class Fingerprint {
  /** Goes up whenever the same source and options give other bytes than before. */
  static final int BYTE_FORMAT = 1;

  private static final ObjectMapper JSON = new ObjectMapper();

  private Fingerprint() {}

  /** SHA-256, in hex, over everything that the output's bytes depend on. */
  static String of(PlanSource source, ModelFamily family, PlanOptions options) {
    ObjectNode all = JSON.createObjectNode();
    all.put("byteFormat", BYTE_FORMAT);
    all.set("options", JSON.valueToTree(options));
    all.put("family", family.name());
    all.put("familyFile", family.digest());
    all.put("config", Sha256.hex(source.config().toString()));
    return of(all, source.files(), source.tensors());
  }

  /** The same of activations, {@code amax} being that of modules whose tensors do not have the say. */
  static String of(
      List<SourceFile> sources, List<LocatedTensor> tensors, PlanOptions options, Map<String, Float> amax) {
    ObjectNode all = JSON.createObjectNode();
    all.put("byteFormat", BYTE_FORMAT);
    all.set("options", JSON.valueToTree(options));
    all.set("amax", JSON.valueToTree(new TreeMap<>(amax)));
    return of(all, sources, tensors);
  }

  private static String of(ObjectNode all, List<SourceFile> sources, List<LocatedTensor> tensors) {
    ArrayNode files = all.putArray("files");
    Map<String, Sha256> headers = headers(tensors);
    for (SourceFile file : sources) {
      ObjectNode entry = files.addObject();
      entry.put("name", file.name()).put("length", file.length()).put("modified", file.modified());
      Sha256 header = headers.get(file.name());
      entry.put("tensors", header == null ? "" : header.hex());
    }

    return Sha256.hex(all.toString());
  }

  /** That of the same plan whose errors are weighed by these statistics. */
  static String weighed(String fingerprint, PlannedImportance importance) {
    ObjectNode all = JSON.createObjectNode();
    all.put("plan", fingerprint);
    all.set("files", JSON.valueToTree(importance.files()));
    all.set("tensors", JSON.valueToTree(new TreeMap<>(importance.tensors())));
    return Sha256.hex(all.toString());
  }

  /** A digest of each file's list of tensors. */
  private static Map<String, Sha256> headers(List<LocatedTensor> tensors) {
    Map<String, Sha256> headers = new TreeMap<>();
    for (LocatedTensor tensor : tensors) {
      Sha256 header = headers.computeIfAbsent(tensor.file(), file -> new Sha256());
      // the name's length before it: no name can then read as another name and shape
      header.update(tensor.name().length() + " " + tensor.name() + " " + tensor.dtype() + " " + tensor.shape() + " "
          + tensor.offset() + " " + tensor.length() + "\n");
    }

    return headers;
  }
}
