# SPDX-License-Identifier: Apache-2.0
class Ctrun < Formula
  desc "Launcher like torchrun, and its process groups for C"
  homepage "https://github.com/ctrun/libct"
  url "https://github.com/ctrun/libct/releases/download/v@VERSION@/ctrun-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "pkgconf" => :build
  depends_on arch: :x86_64
  depends_on "inih"
  depends_on "jansson"
  depends_on "libevent"
  depends_on :linux
  depends_on "openssl@3"

  def install
    args = %w[-DBUILD_TESTING=OFF -DCT_CUDA=off -DCT_MPICC=off]
    system "cmake", "-S", ".", "-B", "build", *args, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system ENV.cc, doc/"examples/hello.c", "-I#{include}", "-L#{lib}", "-lct", "-o", "hello"
    assert_match "the sum is 3", shell_output("#{bin}/ctrun --nproc-per-node=2 ./hello")
  end
end
