// Signatures after Apple's documentation, as far as the project asks for them; pictures are computed, so that tests can run.
@_exported import Foundation
public final class CGImage: @unchecked Sendable {
    public let width: Int, height: Int
    public let rgba: [UInt8] // the stub's own
    public init(width: Int, height: Int, rgba: [UInt8]) { self.width = width; self.height = height; self.rgba = rgba }
    public func cropping(to rect: CGRect) -> CGImage? {
        let (x, y, w, h) = (Int(rect.minX), Int(rect.minY), Int(rect.width), Int(rect.height))
        var cut: [UInt8] = []
        for row in y..<y + h { cut += rgba[4 * (row * width + x)..<4 * (row * width + x + w)] }
        return CGImage(width: w, height: h, rgba: cut)
    }
}
public enum CGImageAlphaInfo: UInt32 { case none = 0, noneSkipLast = 5 }
public enum CGInterpolationQuality: Int32 { case `default` = 0, none = 1, low = 2, medium = 4, high = 3 }
public final class CGColorSpace: @unchecked Sendable { init() {} }
public func CGColorSpaceCreateDeviceRGB() -> CGColorSpace { CGColorSpace() }
public final class CGContext {
    let data: UnsafeMutableRawPointer?, width: Int, height: Int
    public init?(data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
                 space: CGColorSpace, bitmapInfo: UInt32) {
        precondition(bytesPerRow == 4 * width && bitsPerComponent == 8)
        self.data = data; self.width = width; self.height = height
    }
    public var interpolationQuality: CGInterpolationQuality = .default
    /// The stub's own: ResizeBilinear without half-pixel centres, rounded; Core Graphics filters another way.
    public func draw(_ image: CGImage, in rect: CGRect) {
        guard let data else { return }
        let to = data.bindMemory(to: UInt8.self, capacity: 4 * width * height)
        for y in 0..<height {
            let fy = Float(y) * Float(image.height) / Float(height)
            let y0 = Int(fy), y1 = min(y0 + 1, image.height - 1), ay = fy - Float(y0)
            for x in 0..<width {
                let fx = Float(x) * Float(image.width) / Float(width)
                let x0 = Int(fx), x1 = min(x0 + 1, image.width - 1), ax = fx - Float(x0)
                for c in 0..<4 {
                    func at(_ r: Int, _ k: Int) -> Float { Float(image.rgba[4 * (r * image.width + k) + c]) }
                    let top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * ax
                    let low = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * ax
                    to[4 * (y * width + x) + c] = UInt8((top + (low - top) * ay).rounded())
                }
            }
        }
    }
}
