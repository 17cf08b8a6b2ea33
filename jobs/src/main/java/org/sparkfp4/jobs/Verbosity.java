package org.sparkfp4.jobs;

import picocli.CommandLine.Option;

/** The option that every command has for saying more; a picocli mixin. */
final class Verbosity {
  @Option(names = {"-v", "--verbose"}, description = "Print stack traces of errors.")
  boolean verbose;
}
